"""Files that somebody names: a pipe or a device is refused, and nobody waits for it."""

import os
import subprocess
import sys

import pytest

from lib.compiler import arguments
from lib.compiler.raw_module import RawModule
from lib.paths import ROOT
from lib.ptx.files import bytes_of, text_of, write_whole
from lib.ptx.source_lines import SourceLines
from lib.records import rule_searches
from tests.full import no_room


@pytest.fixture(params=["pipe", "device"])
def endless(request, tmp_path):
    """A file of a name that has no end."""
    def named(name):
        path = tmp_path / name
        if request.param == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero")
        return path

    return named


def test_only_regular_files_are_read(endless, tmp_path):
    for path in (endless("file"), tmp_path):
        with pytest.raises(OSError, match="it is no regular file") as error:
            bytes_of(path)
        assert error.value.filename == str(path)
    regular = tmp_path / "regular"
    regular.write_bytes("ä\r\nb\rc".encode())
    assert text_of(regular) == "ä\nb\nc" and len(bytes_of(regular, 8)) == 7
    with pytest.raises(OSError, match="more than 6 bytes"):
        bytes_of(regular, 6)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        bytes_of(tmp_path / "nowhere")


def test_no_reader_waits_for_one(endless):
    for read in (lambda: RawModule(path=endless("a.cu")), lambda: RawModule(path=endless("b.ptx")),
                 lambda: rule_searches.read(endless("c.jsonl"))):
        with pytest.raises(OSError, match="no regular file"):
            read()
    with pytest.raises(ValueError, match="no regular file"):
        arguments.parse([f"A=@{endless('d.npy')}"], 0)
    named = endless("e.cu")
    assert SourceLines(folders=(named.parent,)).line((str(named), 1)) == ""


def test_notebooks_are_checked_without_waiting(endless):
    done = subprocess.run(
        [sys.executable, "-m", "lib", "notebooks", "--check", endless("a.ipynb")], cwd=ROOT,
        capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "it is no regular file" in done.stderr


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
