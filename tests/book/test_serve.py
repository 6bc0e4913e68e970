"""`make serve`: what a reader meets who mistypes, or whose port is taken."""

import contextlib
import http.client
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

from book import serve
from lib.paths import ROOT
from tests.book.conftest import serving

PAGE = "<!DOCTYPE html><title>A page</title>" + "<p>The same again.</p>" * 1000


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A server of a small folder, impatient: its host and port."""
    monkeypatch.setattr(serve.Handler, "timeout", 0.5)
    (tmp_path / "inner").mkdir()
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "inner" / "data.json").write_text("{}" * 1000)
    (tmp_path / "inner" / "picture.png").write_bytes(bytes(1000))
    (tmp_path / "404.html").write_text("This page is not in the book")
    with serving(tmp_path) as server:
        yield server.server_address


def asked(place, path):
    connection = http.client.HTTPConnection(*place, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read()


@pytest.mark.parametrize("path", [
    "/inner/", "/inner", "/..", "/../", "/%2e%2e/%2e%2e/etc/passwd", "/inner/../../",
    "//etc/passwd", "/inner//..//..//etc/passwd", "/%00", "/" + "a" * 5000, "/inner/data.json/",
    "/\\..\\..",
    "/%ff%fe", "/index.html/..%2f..%2fetc/passwd",
])
def test_no_folder_is_listed_and_nothing_outside_is_shown(small, path):
    status, headers, body = asked(small, path)
    while status == 301:  # a folder's own address ends with a stroke
        status, headers, body = asked(small, headers["Location"])
    assert (status == 404 and b"not in the book" in body) or body.decode() == PAGE
    assert b"data.json" not in body and b"root:" not in body


@pytest.mark.parametrize("half", [
    b"", b"GET / HTTP/1.0\r\nHost", b"\x16\x03\x01" + bytes(50),
    b"GET /" + b"a" * 100_000 + b" HTTP/1.0\r\n\r\n",
    b"GET / HTTP/1.0\r\n" + b"A: b\r\n" * 200 + b"\r\n",
])
def test_who_sends_half_a_request_or_none_holds_no_thread(small, half, capfd):
    before = threading.active_count()
    with contextlib.ExitStack() as open_ones:
        for _ in range(30):
            one = open_ones.enter_context(socket.create_connection(small))
            one.sendall(half)
        deadline = time.monotonic() + 10
        while threading.active_count() > before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert threading.active_count() <= before
    assert asked(small, "/")[0] == 200 and capfd.readouterr().err == ""


def test_who_leaves_in_the_middle_is_no_fault(small, tmp_path, capfd):
    (tmp_path / "large.bin").write_bytes(bytes(50_000_000))
    for _ in range(5):
        with socket.create_connection(small) as one:
            one.sendall(b"GET /large.bin HTTP/1.0\r\n\r\n")
            one.recv(100)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert asked(small, "/")[0] == 200
    time.sleep(1)
    assert capfd.readouterr().err == ""


def served(*words):
    return subprocess.run([sys.executable, "-m", "book.serve", *words], cwd=ROOT, text=True,
                          capture_output=True, check=False, timeout=60)


def test_a_taken_port_is_one_line(site):
    with socket.create_server(("localhost", 0)) as other:
        port = other.getsockname()[1]
        done = served(str(port))
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == f"serve: port {port} is taken; name another: make serve PORT={port + 1}\n"


@pytest.mark.parametrize("word", ["http", "-1", "70000"])
def test_what_is_no_port_is_refused(word):
    done = served(word)
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_it_serves_until_it_is_interrupted(site):
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "book.serve", "0"], cwd=ROOT, text=True, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # A shell's background jobs, these tests among them, ignore the signal from their birth.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as server:
        where = server.stdout.readline().split()[2]
        for path in ("", "index.html", serve.PUBLISHED.lstrip("/") + "chapters/glossary.html"):
            with urllib.request.urlopen(where + path) as answer:
                assert answer.status == 200 and answer.read()
        with pytest.raises(urllib.error.HTTPError) as nothing:
            urllib.request.urlopen(where + "%00")
        assert nothing.value.code == 404 and b"not in the book" in nothing.value.read()
        with pytest.raises(urllib.error.HTTPError) as lost:
            urllib.request.urlopen(where + "chapters/99_gone.html")
        assert lost.value.code == 404 and b"This page is not in the book" in lost.value.read()
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=30)
    assert server.returncode == 0 and err == ""
