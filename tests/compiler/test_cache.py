"""The folder of what was compiled before: never another's content, never a torn one."""

import errno
import os
import subprocess
import sys
from contextlib import nullcontext

import pytest

from lib.compiler import cache
from lib.paths import ROOT
from tests.full import no_room


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "FOLDER", tmp_path / "kept")
    return cache.FOLDER


def never():
    raise AssertionError("made again")


def test_made_once_for_the_same_parts(folder):
    assert cache.cached(["a", b"b"], lambda: b"content") == b"content"
    assert cache.cached(["a", b"b"], never) == b"content"
    assert [file.name for file in folder.iterdir()] == [cache._path(["a", "b"]).name]


@pytest.mark.parametrize("other", [["a"], ["b", "a"], ["ab"], ["a", "b", ""], ["a", "bb"]])
def test_other_parts_are_another_file(other):
    cache.cached(["a", "b"], lambda: b"content")
    assert cache.cached(other, lambda: b"another") == b"another"
    assert cache.cached(["a", "b"], never) == b"content"


def test_a_torn_file_is_made_again(folder):
    cache.cached(["a"], lambda: b"content" * 1000)
    file = cache._path(["a"])
    for torn in (file.read_bytes()[:-5], b"", b"no such thing"):
        file.write_bytes(torn)
        assert cache.cached(["a"], lambda: b"again") == b"again"


@pytest.mark.parametrize("content", [b"", b"garbage", b"{}", b"x" * 31], ids=repr)
def test_what_nobody_here_kept_is_made_again(content, folder):
    cache.cached(["a"], lambda: b"content")
    file = cache._path(["a"])
    file.write_bytes(cache.zlib.compress(content))
    assert cache.cached(["a"], lambda: b"again") == b"again"
    assert cache.cached(["a"], never) == b"again"  # and has taken its place


def test_a_pipe_or_a_link_to_a_device_is_made_a_file(folder):
    folder.mkdir()
    file = cache._path(["a"])
    for put in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
        file.unlink(missing_ok=True)
        put(file)
        assert cache.cached(["a"], lambda: b"content") == b"content"
        assert file.is_file() and not file.is_symlink()


def test_what_fails_is_not_kept(folder):
    with pytest.raises(AssertionError, match="made again"):
        cache.cached(["a"], never)
    assert not folder.exists()
    assert cache.cached(["a"], lambda: b"content") == b"content"


@pytest.mark.parametrize("full", [False, True], ids=["no folder", "full disk"])
def test_a_folder_that_cannot_be_written_changes_no_result(folder, full, capsys):
    cache._say_unwritable.cache_clear()
    if not full:
        folder.write_text("a file where the folder should be")
    content = os.urandom(5000)
    with no_room() if full else nullcontext():
        assert cache.cached(["a"], lambda: content) == content
        assert cache.cached(["a"], lambda: content[1:]) == content[1:]
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and str(folder) in err
    assert not (full and list(folder.iterdir()))


def test_a_folder_that_can_only_be_read_serves(monkeypatch, capsys):
    def refused(path):
        raise OSError(errno.EROFS, "Read-only file system")

    cache.cached(["a"], lambda: b"content")
    monkeypatch.setattr(cache.os, "utime", refused)
    assert cache.cached(["a"], never) == b"content" and capsys.readouterr().err == ""


def test_what_nobody_asks_for_goes_first(folder, monkeypatch):
    def noise(seed):
        return bytes((seed * i * i + i) % 251 for i in range(4096))

    size = len(cache.zlib.compress(noise(1), 1))
    monkeypatch.setattr(cache, "LIMIT_BYTES", 4 * size + size // 2)
    for name in "abcd":
        cache.cached([name], lambda: noise(1))
    cache.cached(["a"], never)
    cache.cached(["e"], lambda: noise(1))
    left = {file.name for file in folder.iterdir()}
    assert left == {cache._path([name]).name for name in "aed"}
    assert cache.cached(["a"], never) == noise(1)


def test_a_file_that_goes_during_the_look_is_not_told(folder, monkeypatch, capsys):
    """Another process renames its new file while this one looks at the folder's sizes."""
    entries = os.scandir

    def raced(where):
        (where / ".new-1-1").write_bytes(b"another's")
        listed = list(entries(where))
        (where / ".new-1-1").unlink()
        return listed

    cache._say_unwritable.cache_clear()
    monkeypatch.setattr(cache, "_unseen", cache.LIMIT_BYTES)
    monkeypatch.setattr(cache.os, "scandir", raced)
    assert cache.cached(["a"], lambda: b"content") == b"content"
    assert cache._unseen == 0 and capsys.readouterr().err == ""


def test_the_first_thing_that_a_process_writes_has_it_look(folder):
    """Or thousands of short processes, each of which writes little, would never look."""
    found = subprocess.run([sys.executable, "-c", FIRST, str(folder)], text=True, check=True,
                           capture_output=True, cwd=ROOT)
    assert found.stdout.split() == ["1"]


FIRST = """
import sys
from pathlib import Path
from lib.compiler import cache
cache.FOLDER, looks = Path(sys.argv[1]), []
cache._trim = looks.append
for name in ("one", "two"):
    cache.cached([name], lambda: b"small")
print(len(looks))
"""

WRITER = """
import sys, time
from pathlib import Path
from lib.compiler import cache
cache.FOLDER = Path(sys.argv[1])
made = []

def make():
    made.append(1)
    time.sleep(float(sys.argv[2]))
    return bytes(range(256)) * 4096

print("began", flush=True)
content = cache.cached(["shared"], make)
print(len(made), content == bytes(range(256)) * 4096, flush=True)
"""


def writer(folder, seconds):
    """Another process that asks for the same thing, and takes a while to make it."""
    return subprocess.Popen([sys.executable, "-c", WRITER, str(folder), str(seconds)], text=True,
                            stdout=subprocess.PIPE, cwd=ROOT)


def test_processes_share_what_they_make(folder):
    both = [writer(folder, 0.3) for _ in range(2)]
    assert [one.communicate(timeout=60)[0].split()[-1] for one in both] == ["True", "True"]
    later = writer(folder, 0)
    assert later.communicate(timeout=60)[0].split()[-2:] == ["0", "True"]  # nothing is made again
    assert len(list(folder.iterdir())) == 1


def test_a_process_that_is_killed_leaves_nothing_half_written(folder):
    killed = writer(folder, 60)
    assert killed.stdout.readline() == "began\n"
    killed.kill()
    killed.wait()
    killed.stdout.close()
    assert cache.cached(["shared"], lambda: b"made again") == b"made again"
    # As if it had died while it wrote: its file has another name, and goes like all that is old.
    folder.joinpath("new-half").write_bytes(b"torn")
    assert cache.cached(["shared"], lambda: b"never") == b"made again"
