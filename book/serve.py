"""Serve the built book on this machine: `python -m book.serve [PORT]`."""

from __future__ import annotations

import argparse
import errno
import functools
import http.server
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from book.compiling import MAX_REQUEST, Door
from book.site import address
from lib.ptx.files import bytes_of

SITE = Path(__file__).resolve().parent.parent / "_build" / "html"
PUBLISHED = urlsplit(address()).path
SILENT_SECONDS = 10  # that a browser may be silent in the middle of a request


class Server(http.server.ThreadingHTTPServer):
    """A server that says nothing of browsers which end a connection."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Leave alone who has gone; anything else is a fault, and is told."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the book, and its own page for addresses that lead nowhere.

    They lie at the root, and also under the path that the book is published at, which that page
    names. Folders are not listed.
    """

    timeout = SILENT_SECONDS
    door = Door()  # to the compiler

    def list_directory(self, path: object) -> None:
        """Answer that a folder without a page is nothing of the book's."""
        self.send_error(404)

    def do_GET(self) -> None:
        """Send a file, or what a page must know to ask the compiler."""
        if not self._at_the_door():
            super().do_GET()
        elif not self.door.open_to(self.headers, self.client_address[0]):
            self._tell(403, {"error": "Only this machine's own pages may ask the compiler."})
        else:
            self._tell(200, self.door.about())

    def do_POST(self) -> None:
        """Compile what a page sends; nothing else takes anything."""
        length = self.headers.get("Content-Length", "")
        if not self._at_the_door():
            self._tell(404, {"error": "Nothing is sent here."})
        elif not self.door.open_to(self.headers, self.client_address[0]):
            self._tell(403, {"error": "Only this machine's own pages may ask the compiler."})
        elif not length.isdecimal() or int(length) > MAX_REQUEST:
            self._tell(413, {"error": f"A request has at most {MAX_REQUEST:,} bytes."})
        else:
            self._tell(*self.door.compile(self.headers, self.rfile.read(int(length))))

    def _at_the_door(self) -> bool:
        return urlsplit(self.path).path.removeprefix(PUBLISHED).strip("/") == "compile"

    def _tell(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        if status >= 400:
            self.send_header("Connection", "close")  # what it sent further is not read
            self.close_connection = True
        self.end_headers()
        self.wfile.write(body)

    def translate_path(self, path: str) -> str:
        """The file that an address stands for."""
        found = super().translate_path("/" + path.removeprefix(PUBLISHED).removeprefix("/"))
        # No file's name has a NUL, and to ask the system for one is an error.
        return found.replace("\0", "\N{REPLACEMENT CHARACTER}")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer that something is not there, as the published site does."""
        lost = Path(self.directory) / "404.html"
        if code != 404 or not lost.is_file():
            super().send_error(code, message, explain)
            return
        page = bytes_of(lost)
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page)

    def log_message(self, format: str, *arguments: object) -> None:
        """Keep the terminal for what the reader should see."""


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port: 0 to 65535")
    return number


def main(argv: list[str] | None = None) -> int:
    """Serve until Ctrl-C; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m book.serve", description=__doc__)
    parser.add_argument("port", type=_port, nargs="?", default=8000, help="default: 8000")
    options = parser.parse_args(argv)
    if not (SITE / "index.html").is_file():
        print("serve: there is no built book; run `make book`", file=sys.stderr)
        return 2
    try:
        handler = functools.partial(Handler, directory=str(SITE))
        server = Server(("localhost", options.port), handler)
    except OSError as error:
        why = "is taken" if error.errno == errno.EADDRINUSE else f"can't be had: {error.strerror}"
        print(f"serve: port {options.port} {why}; name another: make serve "
              f"PORT={(options.port + 1) % 65536}", file=sys.stderr)
        return 2
    with server:
        print(f"The book: http://localhost:{server.server_port}/ (Ctrl-C stops)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
