"""Serve the built book on this machine: `python -m book.serve [PORT]`."""

from __future__ import annotations

import argparse
import errno
import functools
import http.server
import sys
from pathlib import Path
from urllib.parse import urlsplit

from book.site import address

SITE = Path(__file__).resolve().parent.parent / "_build" / "html"
PUBLISHED = urlsplit(address()).path


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the book, and its own page for addresses that lead nowhere.

    They lie at the root, and also under the path that the book is published at, which that page
    names.
    """

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
        page = lost.read_bytes()
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
        server = http.server.ThreadingHTTPServer(("localhost", options.port), handler)
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
