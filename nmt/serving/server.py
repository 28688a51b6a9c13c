"""The HTTP server: binds a port, answers requests until it is stopped, and finishes those that have begun."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.serving.access import Keys, Pages, is_loopback
from nmt.serving.app import Service, build_app
from nmt.serving.directions import Directions
from nmt.serving.limits import MAX_CONNECTIONS, Limits
from nmt.serving.log import Format, writer
from nmt.system.errors import ConfigError, printable
from nmt.system.limits import KIB
from nmt.system.signals import ENDING, handled_signals

log = logging.getLogger(__name__)
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it warns of what the client is told

BACKLOG = 1024
SEND_BUFFER = 64 * KIB
STOP_SHARE = 7 / 8
"""Share of the time to stop after which requests that are not finished are answered with an error."""
MAX_CHUNKS = 10_000
"""Maximum number of chunks of a body: reading each takes time in which nobody else is answered."""


class Server:
    """An HTTP server for models; `run` blocks until a signal or `stop` ends it.

    Args:
        host: Address to listen on.
        port: Port; 0 chooses a free one.

    Raises:
        ConfigError: The address cannot be bound.
    """

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self._socket = _bind(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._server: _Uvicorn | None = None
        self.started = threading.Event()

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def close(self) -> None:
        """Release the port."""
        self._socket.close()

    def run(
        self,
        directions: Directions,
        *,
        api_keys: Collection[str] = (),
        allowed_hosts: Collection[str] = (),
        allowed_origins: Collection[str] = (),
        trusted_proxies: Collection[str] = (),
        limits: Limits | None = None,
        log_format: Format = "json",
    ) -> None:
        """Answer requests until stopped; returns when those that have begun are finished or have timed out.

        Args:
            directions: The models.
            api_keys: Accepted API keys; if there are none, all requests are allowed.
            allowed_hosts: Names that the server is reached by; see `Pages`.
            allowed_origins: Origins of web pages that may use it; see `Pages`.
            trusted_proxies: Addresses of reverse proxies whose `X-Forwarded-For` is trusted.
            limits: Limits on requests.
            log_format: Format of the request log on the logger `nmt.serving.requests`.

        Raises:
            ConfigError: An argument is invalid.
        """
        limits = limits or Limits()
        pages = Pages(self.host, allowed_hosts, allowed_origins)
        keys = Keys(api_keys)
        number = 0
        write = writer(log_format)

        def record(each: Any) -> None:
            nonlocal number
            number += 1
            write(each)

        if not (is_loopback(self.host) or keys.required):
            log.warning(f"--host {self.host}: other machines may use the server without a key; --api-keys requires one")
        service = Service(directions, keys, pages, limits)
        try:
            self._server = _Uvicorn(_config(build_app(service, record), limits, trusted_proxies))
            self._server.on_start = self._announce(directions)
            asyncio.run(self._server.serve([self._socket]))
        finally:
            service.stop(self._server.seconds_left if self._server is not None else 0.0)
            self.close()
        log.info(f"stopped{self._server.reason}: {number:,} requests were answered")

    def _announce(self, directions: Directions) -> Callable[[], None]:
        def announce() -> None:
            log.info(f"serving {', '.join(map(str, directions))} at {printable(self.url)}; Ctrl-C stops the server")
            self.started.set()

        return announce

    def stop(self) -> None:
        """Ask the server to stop, from any thread."""
        if self._server is not None:
            self._server.should_exit = True


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Connections inherit it: what a slow client has read is soon seen from here.
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
            bound.bind(address)
        except BaseException:
            bound.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"--host {host} --port {port}: {reason}; choose another") from None
    return bound


def _config(app: ASGIApp, limits: Limits, trusted_proxies: Collection[str]) -> uvicorn.Config:
    """uvicorn without its own log messages, and with our protocol."""

    class Connection(_Connection):
        head_seconds = limits.head_seconds
        send_seconds = limits.send_seconds

    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        log_level=logging.CRITICAL,
        access_log=False,
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        backlog=BACKLOG,
        timeout_graceful_shutdown=limits.stop_seconds,  # type: ignore[arg-type]  # passed to asyncio.wait_for
    )


class _Uvicorn(uvicorn.Server):
    """Stops gracefully at the first signal, immediately at the second; handles signals only while it runs."""

    on_start: Callable[[], None]
    reason = ""
    _deadline = 0.0

    @property
    def seconds_left(self) -> float:
        """Time until the server must have stopped."""
        return 0.0 if self.force_exit else max(0.0, self._deadline - time.monotonic())

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        seconds = float(self.config.timeout_graceful_shutdown or 0)
        self._deadline = time.monotonic() + seconds
        asyncio.get_running_loop().call_later(STOP_SHARE * seconds, self._end_requests)
        await super().shutdown(sockets)

    def _end_requests(self) -> None:
        """Cancel the requests that are not finished, which answers them."""
        for task in self.server_state.tasks:
            task.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        with handled_signals(ENDING, self.handle_exit):
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True
        self.reason = f" by {signal.Signals(sig).name}"


class _Parser(h11.Connection):
    """Refuses a body in very many chunks."""

    _chunks = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            if self._chunks > MAX_CHUNKS:
                raise h11.RemoteProtocolError("too many chunks")
        elif isinstance(event, h11.Request):
            self._chunks = 0
        return event


class _Connection(H11Protocol):
    """HTTP/1.1 with time limits for headers and for reading replies, and errors in JSON for malformed requests."""

    head_seconds: float
    send_seconds: float
    _timer: asyncio.TimerHandle | None = None
    _watch: asyncio.TimerHandle | None = None
    _unsent, _progress = 0, 0.0  # bytes of replies that wait for the client, and when it last read some

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn = _Parser(h11.SERVER)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.close()
        self._update_timer()
        self._watch_reading()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in filter(None, (self._timer, self._watch)):
            timer.cancel()
        super().connection_lost(exc)

    def _watch_reading(self) -> None:
        """Disconnect a client that has not read anything of what waits for it for a while."""
        unsent, now = self.transport.get_write_buffer_size(), self.loop.time()
        if unsent == 0 or unsent < self._unsent:
            self._progress = now
        elif now - self._progress >= self.send_seconds:
            self.transport.abort()
            return
        self._unsent = unsent
        self._watch = self.loop.call_later(self.send_seconds / 10, self._watch_reading)

    def _update_timer(self) -> None:
        """Run the timer while headers are due, but not while a request is handled, which has limits of its own."""
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif not busy and self._timer is None:
            self._timer = self.loop.call_later(self.head_seconds, self._close_if_idle)

    def _close_if_idle(self) -> None:
        self._timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        body = json.dumps({"error": msg}).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        try:
            for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:  # a reply is being sent already
            pass
        self.transport.close()
