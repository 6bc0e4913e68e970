"""Files that somebody names: a pipe or a device is refused, and nobody waits for it."""

import os
import subprocess
import sys

import pytest

from lib.compiler import arguments
from lib.compiler.raw_module import RawModule
from lib.paths import ROOT
from lib.ptx.files import bytes_of, text_of
from lib.ptx.source_lines import SourceLines
from lib.records import rule_searches


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
