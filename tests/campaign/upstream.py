"""A server to put behind a proxy. A body that it sends has a known length, comes in chunks, or lasts until
the connection ends. The server records the requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

from tests.listener import Handler, Listener

BODY: Final = bytes(range(256)) * 4_096
"""1 MiB."""
CHUNK: Final = 1 << 14


class Upstream:
    """The server's address and the requests that the server got. The server answers /body, /chunks and
    /until-closed with `BODY`, echoes what is posted, and answers other paths with status 404.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.questions: list[tuple[str, str, dict[str, str]]] = []
        """Method, target and headers of each request, in order."""


class _Handler(Handler):
    def do_GET(self) -> None:
        self.server.owner.questions.append((self.command, self.path, dict(self.headers.items())))
        path = self.path.partition("?")[0]
        if path not in ("/body", "/chunks", "/until-closed"):
            self._send_head(404, "Not Here", ("Content-Length", "0"))
        elif path == "/body":
            self._send_head(
                200, "Fine", ("Content-Length", str(len(BODY))), ("X-Twice", "1"), ("X-Twice", "2")
            )
            if self.command == "GET":
                self.wfile.write(BODY)
        elif path == "/chunks":
            self._send_head(200, "OK", ("Transfer-Encoding", "chunked"))
            for at in range(0, len(BODY), CHUNK):
                self.wfile.write(b"%x\r\n%b\r\n" % (CHUNK, BODY[at : at + CHUNK]))
            self.wfile.write(b"0\r\n\r\n")
        else:
            self._send_head(200, "OK", ("Connection", "close"))
            self.wfile.write(BODY)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.server.owner.questions.append((self.command, self.path, dict(self.headers.items())))
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self._send_head(201, "Created", ("Content-Length", str(len(data))))
        self.wfile.write(data)

    def _send_head(self, status: int, reason: str, *headers: tuple[str, str]) -> None:
        self.send_response_only(status, reason)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()


@contextmanager
def upstream() -> Iterator[Upstream]:
    """Yields a server that runs as long as the context lasts."""
    made = Upstream("")
    with closing(Listener(_Handler, made)) as listener:
        made.url = listener.url
        yield made
