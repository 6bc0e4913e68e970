"""The method page's tables say what the models say."""

from lib.gpus import GPUS
from lib.topics.occupancy.page import residents
from lib.topics.roofline.page import ridge_points


def rows(table):
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_ridge_points_of_every_gpu():
    found = {row[0]: row for row in rows(ridge_points())}
    assert list(found) == list(GPUS)
    assert found["T4"][4:] == ["25.4", "203"]


def test_residents_name_what_limits_them():
    (row,) = rows(residents([128], threads=256))
    assert row == ["128", "16 (50%), registers", "16 (25%), registers", "16 (25%), registers"]
