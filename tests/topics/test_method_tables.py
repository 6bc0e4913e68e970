"""The method page's tables say what the models say."""

from lib.gpus import GPUS
from lib.topics.banks.page import wavefronts
from lib.topics.coalescing.page import sectors
from lib.topics.occupancy.page import residents
from lib.topics.roofline.page import ridge_points


def rows(table):
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_ridge_points_of_every_gpu():
    found = {row[0]: row for row in rows(ridge_points())}
    assert list(found) == list(GPUS)
    assert found["T4"][4:] == ["25.4", "203"]


def test_sectors_of_a_broadcast_a_row_and_a_column():
    assert rows(sectors((0, 1, 8))) == [
        ["0", "1", "32", "4", "12.5%"],
        ["1", "4", "128", "128", "100%"],
        ["8", "32", "1024", "128", "12.5%"],
    ]


def test_wavefronts_of_a_row_a_column_and_a_padded_column():
    assert rows(wavefronts((0, 1, 2, 32, 33))) == [
        ["0", "1", "1", "1"],
        ["1", "32", "1", "1"],
        ["2", "16", "2", "1"],
        ["32", "1", "32", "1"],
        ["33", "32", "1", "1"],
    ]


def test_residents_name_what_limits_them():
    (row,) = rows(residents([128], threads=256))
    assert row == ["128", "16 (50%), registers", "16 (25%), registers", "16 (25%), registers"]
