"""Files are written whole or not at all, through one helper."""

import os

import pytest

from lib.ptx.files import write_whole
from tests.full import no_room


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    write_whole(file, b"first")
    file.chmod(0o640)
    link.symlink_to(file)
    write_whole(link, b"second")
    assert link.is_symlink() and file.read_bytes() == b"second"
    assert file.stat().st_mode & 0o777 == 0o640
    with no_room(), pytest.raises(OSError) as error:
        write_whole(file, bytes(5000))
    assert error.value.filename == str(file) and file.read_bytes() == b"second"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def test_a_device_is_written_to_and_not_replaced():
    write_whole(os.devnull, b"gone")
    for path in ("/dev/full", "/dev/null/nowhere"):
        with pytest.raises(OSError) as error:
            write_whole(path, b"lost")
        assert error.value.filename == path
    assert not os.path.isfile(os.devnull)
