"""The HTTP server: answers requests at a port until it is stopped, and finishes those that have begun."""

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Collection, Iterator
from functools import partial
from types import FrameType
from typing import Any

import h11
import uvicorn
from pydantic_core import to_json
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.serving.access import Pages, is_loopback
from nmt.serving.app import App, Service
from nmt.serving.log import Format, write
from nmt.serving.request_limits import MAX_CONNECTIONS, Limits
from nmt.system.errors import ConfigError, printable
from nmt.system.limits import KIB
from nmt.system.signals import ENDING, handled_signals

log = logging.getLogger(__name__)
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it warns of what the client is told

SEND_BUFFER = 64 * KIB
STOP_SHARE = 7 / 8
"""Share of the time to stop after which requests that are not finished are answered with an error."""
MAX_CHUNKS = 10_000
"""Maximum number of chunks of a body: reading each takes time in which nobody else is answered."""


def bind(host: str, port: int) -> socket.socket:
    """Take an address, without listening yet.

    Args:
        host: Name or address to listen on.
        port: Port; 0 chooses a free one.

    Raises:
        ConfigError: The address cannot be bound.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Connections inherit it: what a slow client has read is soon seen from here.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
            listener.bind(address)
        except BaseException:
            listener.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"--host {host} --port {port}: {reason}; choose another") from None
    return listener


class Server(uvicorn.Server):
    """An HTTP server for models. It stops gracefully at the first signal, immediately at the second.

    Args:
        listener: Socket from `bind`.
        host: Address that it listens on.
        service: What it does for requests.
        pages: Web pages that may use it.
        trusted_proxies: Addresses of reverse proxies whose `X-Forwarded-For` is trusted.
        log_format: Format of the request log on the logger `nmt.serving.requests`.
    """

    def __init__(
        self,
        listener: socket.socket,
        host: str,
        service: Service,
        pages: Pages,
        trusted_proxies: Collection[str] = (),
        log_format: Format = "json",
    ) -> None:
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        if not (is_loopback(host) or service.keys.required):
            log.warning(f"--host {host}: other machines may use the server without a key; --api-keys requires one")
        self._listener, self._service = listener, service
        self._deadline, self._reason = 0.0, ""
        super().__init__(
            uvicorn.Config(  # without messages of its own
                App(service, pages, partial(write, kind=log_format)),
                http=partial(_Connection, service.limits),  # type: ignore[arg-type]
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                log_level=logging.CRITICAL,
                access_log=False,
                server_header=False,
                proxy_headers=bool(trusted_proxies),
                forwarded_allow_ips=list(trusted_proxies),
                timeout_graceful_shutdown=STOP_SHARE * service.limits.stop_seconds,  # type: ignore[arg-type]
            )
        )

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer requests until stopped; returns when those that have begun are finished or have timed out."""
        try:
            super().run([self._listener])
        finally:
            self._service.stop(self._seconds_left)
        log.info(f"stopped{self._reason}: {self.server_state.total_requests:,} requests were answered")

    @property
    def _seconds_left(self) -> float:
        """Time until the server must have stopped."""
        return 0.0 if self.force_exit else max(0.0, self._deadline - time.monotonic())

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        counts = {str(direction): len(direction.models) for direction in self._service.directions}
        names = ", ".join(name if count == 1 else f"{name} ({count} models)" for name, count in counts.items())
        log.info(f"serving {names} at {printable(self.url)}; Ctrl-C stops the server")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish the requests that have begun; those that take too long are cancelled, which answers them."""
        self._deadline = time.monotonic() + self._service.limits.stop_seconds
        await super().shutdown(sockets)
        if tasks := set(self.server_state.tasks):
            await asyncio.wait(tasks, timeout=self._seconds_left)

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
    """Refuses a body in very many chunks."""

    chunks = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.chunks = 0
        elif isinstance(event, h11.Data):
            self.chunks += event.chunk_start
            if self.chunks > MAX_CHUNKS:
                raise h11.RemoteProtocolError("too many chunks")
        return event


class _Connection(H11Protocol):
    """HTTP/1.1 with time limits for headers and for reading replies, and errors in JSON for malformed requests."""

    def __init__(self, limits: Limits, **options: Any) -> None:
        super().__init__(**options)
        self.conn: _Parser = _Parser(h11.SERVER)
        self._limits = limits
        self._request: object = None  # the latest
        self._unsent = 0  # bytes of replies that wait for the client
        self._read_time = self._request_time = self.loop.time()  # when the client last read some of them, and asked

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.close()
        self._watch()

    def _watch(self) -> None:
        """Disconnect a client that reads nothing of its replies for a while, or does not finish its headers."""
        now, unsent = self.loop.time(), self.transport.get_write_buffer_size()
        if unsent == 0 or unsent < self._unsent:
            self._read_time = now
        if self.cycle is not self._request or (self.cycle is not None and not self.cycle.response_complete):
            self._request_time = now  # a request that is handled has limits of its own
        self._unsent, self._request = unsent, self.cycle
        if now - self._read_time >= self._limits.send_seconds:
            self.transport.abort()
        elif now - self._request_time >= self._limits.head_seconds:
            self.transport.close()
        else:
            seconds = min(self._limits.send_seconds, self._limits.head_seconds) / 10
            self._timer = self.loop.call_later(seconds, self._watch)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        many = f"the body has more than {MAX_CHUNKS:,} chunks; send it in fewer"
        body = to_json({"error": many if self.conn.chunks > MAX_CHUNKS else msg})
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        with contextlib.suppress(h11.LocalProtocolError):  # a reply is being sent already
            for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
