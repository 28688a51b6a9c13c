"""The HTTP server: answers requests at a port until it is stopped, and finishes those that have begun."""

import asyncio
import contextlib
import json
import logging
import signal
import socket
import threading
from collections.abc import Collection, Iterator
from functools import partial
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.serving.access import Pages, is_loopback
from nmt.serving.app import App
from nmt.serving.detection import rank_languages
from nmt.serving.log import Format, write
from nmt.serving.request_limits import MAX_CONNECTIONS, Limits
from nmt.serving.service import Service
from nmt.system.errors import ConfigError, printable
from nmt.system.limits import KIB
from nmt.system.messages import Message, Parameter
from nmt.system.signals import ENDING, handled_signals

log = logging.getLogger(__name__)
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it warns of what the client is told

SEND_BUFFER = 64 * KIB
MAX_CHUNKS = 10_000
"""Maximum number of chunks of a body: reading each takes time in which nobody else is answered."""
MIN_READING = 4 * KIB
"""Bytes per second at which a client must read a reply, on average, to keep its place."""
LAST_BATCH = 1.0
"""Seconds that a model's thread may take to end, once no request waits for it."""


def bind(host: str, port: int) -> socket.socket:
    """Take an address.

    Args:
        host: Name or address to listen on.
        port: Port; 0 chooses a free one.

    Raises:
        ConfigError: The address cannot be bound.
    """
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            "{host} {port}: {reason}; choose another",
            host=Parameter("host", host),
            port=Parameter("port", port),
            reason=reason,
        ) from None
    # Connections inherit it: what a slow client has read is soon seen from here.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    # And this too: the body of a reply does not wait until the client has acknowledged the head (40 ms).
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


DETECTION = "nmt detection"
"""Name of the thread that reads the model of languages."""


class Server(uvicorn.Server):
    """An HTTP server for models. It stops gracefully at the first signal, immediately at the second.

    Args:
        listener: Socket from `bind`.
        host: Address that it listens on.
        service: Its work for requests.
        pages: Web pages that may use it.
        trusted_proxies: Addresses of reverse proxies whose `X-Forwarded-For` is trusted.
        log_format: Format of the request log on the logger `nmt.serving.requests`.
        log_probes: True if answered health checks and scrapes are logged.
    """

    def __init__(
        self,
        listener: socket.socket,
        host: str,
        service: Service,
        pages: Pages,
        trusted_proxies: Collection[str] = (),
        log_format: Format = "json",
        log_probes: bool = True,
    ) -> None:
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        if not (is_loopback(host) or service.keys.required):
            unguarded = Message(
                "{host}: other machines may use the server without a key; {key_file} requires one",
                host=Parameter("host", host),
                key_file=Parameter("key_file"),
            )
            log.warning("%s", unguarded)
        self._listener = listener
        self._service = service
        self._reason = ""
        super().__init__(
            uvicorn.Config(  # without messages of its own
                App(service, pages, partial(write, kind=log_format, probes=log_probes)),
                http=partial(_Connection, service.limits),  # type: ignore[arg-type]
                limit_concurrency=MAX_CONNECTIONS,
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                log_level=logging.CRITICAL,
                access_log=False,
                server_header=False,
                proxy_headers=bool(trusted_proxies),
                forwarded_allow_ips=list(trusted_proxies),
                timeout_graceful_shutdown=service.limits.stop_seconds,
            )
        )

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer requests until stopped; returns when those that have begun are finished or have timed out."""
        try:
            super().run([self._listener])
        finally:
            self._service.stop(LAST_BATCH)
        log.info(f"stopped{self._reason}: {self.server_state.total_requests:,} requests were answered")

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        self._service.downloads.clean_up()
        # The first detection reads the library's model, which takes a second or more: not of the first user.
        sources = {direction.source for direction in self._service.directions}
        threading.Thread(target=rank_languages, args=("text", sources), name=DETECTION, daemon=True).start()
        await super().startup(sockets)
        counts = {str(direction): len(direction.models) for direction in self._service.directions}
        names = ", ".join(name if count == 1 else f"{name} ({count} models)" for name, count in counts.items())
        models = "".join(f"; {model}" for model in self._service.directions.served)
        log.info(f"serving {names} at {printable(self.url)}; Ctrl-C stops the server{models}")

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while the server runs."""
        with handled_signals(ENDING, self.handle_exit):
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; at once if it is the second signal."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._reason = f" by {signal.Signals(sig).name}"


class _Parser(h11.Connection):
    """Refuses bytes that a proxy may read as another request, and a body in very many chunks; counts its output.

    h11 already refuses different lengths, other transfer codings than `chunked`, and spaces before a colon.

    Attributes:
        sent: Bytes of replies.
    """

    chunks = 0
    sent = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.chunks = 0
            _check_framing(event)
        elif isinstance(event, h11.Data):
            self.chunks += event.chunk_start
            if self.chunks > MAX_CHUNKS:
                raise h11.RemoteProtocolError("too many chunks")
        return event

    def send(self, event: Any) -> Any:
        data = super().send(event)
        self.sent += len(data or b"")
        return data


def _check_framing(request: h11.Request) -> None:
    """Refuse a request whose end is ambiguous (RFC 9112, 6.1), and versions other than HTTP/1.0 and HTTP/1.1.

    Raises:
        RemoteProtocolError: It is ambiguous.
    """
    names = {name for name, _ in request.headers}
    is_old = request.http_version == b"1.0"
    if request.http_version not in (b"1.0", b"1.1"):
        raise h11.RemoteProtocolError("neither HTTP/1.0 nor HTTP/1.1")
    is_ambiguous = b"content-length" in names or is_old
    if b"transfer-encoding" in names and is_ambiguous:
        raise h11.RemoteProtocolError("Transfer-Encoding with Content-Length, or in HTTP/1.0")


class _Connection(H11Protocol):
    """HTTP/1.1 with a time limit for clients that do not finish their headers, or read their replies too slowly."""

    def __init__(self, limits: Limits, **options: Any) -> None:
        super().__init__(**options)
        self.conn = self._parser = _Parser(h11.SERVER)
        self._patience = limits.idle_seconds
        self._request: object = None  # the latest
        self._read = 0  # bytes of replies that the client has read, or the system has taken for it
        self._end = self.loop.time() + self._patience  # when the client is disconnected

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def _watch(self) -> None:
        """Disconnect a client that makes too little progress.

        While a reply waits for the client, each byte that it reads buys time, at most the full patience.
        """
        now = self.loop.time()
        unsent = self.transport.get_write_buffer_size()
        read = self._parser.sent - unsent
        at_work = self.cycle and not self.cycle.response_complete
        if unsent:
            self._end = min(self._end + (read - self._read) / MIN_READING, now + self._patience)
        elif at_work or self.cycle is not self._request:
            self._end = now + self._patience
        self._read = read
        self._request = self.cycle
        if now >= self._end:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(self._patience / 10, self._watch)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        body = json.dumps({"error": msg}).encode()
        headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
        head = h11.Response(status_code=400, headers=list(headers.items()), reason=b"Bad Request")
        with contextlib.suppress(h11.LocalProtocolError):  # a reply is being sent already
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
