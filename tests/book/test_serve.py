"""`make serve`: what a reader meets who mistypes, or whose port is taken."""

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from book import serve

ROOT = Path(__file__).resolve().parents[2]


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
