"""The server's life: it takes a port, answers until it is asked to stop, and ends what it has begun."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.errors import ConfigError, printable
from nmt.serving.access import Keys, Pages, is_loopback
from nmt.serving.app import Service, build_app
from nmt.serving.directions import Directions
from nmt.serving.limits import MAX_CONNECTIONS, Limits
from nmt.serving.log import Format, writer

log = logging.getLogger(__name__)

STOP_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
BACKLOG = 1024


class Server:
    """A server of models; `run` blocks until a signal or `stop` ends it.

    Args:
        host: Address to listen on.
        port: Port; 0 takes any that is free.

    Raises:
        ConfigError: The address cannot be had.
    """

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self._socket = _bind(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._server: _Uvicorn | None = None
        self.started = threading.Event()

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def close(self) -> None:
        """Give the port back."""
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
        """Answer requests; returns when all that was begun has ended, or has had its time.

        Args:
            directions: The models.
            api_keys: Keys, one of which a client must give; none lets everybody in.
            allowed_hosts: Names that the server is reached by; see `Pages`.
            allowed_origins: Web pages that may use it; see `Pages`.
            trusted_proxies: Addresses of reverse proxies, whose `X-Forwarded-For` is believed.
            limits: What one client may ask.
            log_format: How requests are told on the logger `nmt.serving.requests`.

        Raises:
            ConfigError: An argument is wrong.
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
            log.warning(f"--host {self.host}: other machines may use the server without a key; --api-keys asks for one")
        service = Service(directions, keys, pages, limits)
        try:
            self._server = _Uvicorn(_config(build_app(service, record), limits, trusted_proxies))
            self._server.on_start = self._announce(directions)
            asyncio.run(self._server.serve([self._socket]))
        finally:
            service.stop(limits.stop_seconds)
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
            bound.bind(address)
        except BaseException:
            bound.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"--host {printable(host)} --port {port}: {reason}; choose another") from None
    return bound


def _config(app: ASGIApp, limits: Limits, trusted_proxies: Collection[str]) -> uvicorn.Config:
    """uvicorn without its own messages, and with our protocol."""

    class Connection(_Connection):
        head_seconds = limits.head_seconds

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
        timeout_graceful_shutdown=limits.stop_seconds,  # type: ignore[arg-type]  # it is given to asyncio.wait_for
    )


class _Uvicorn(uvicorn.Server):
    """Stops at the first signal, and at once at the second; the signals are its own only while it runs."""

    on_start: Callable[[], None]
    reason = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.on_start()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # as nohup ignores SIGHUP
                signal.signal(number, self.handle_exit)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True
        self.reason = f" by {signal.Signals(sig).name}"


class _Connection(H11Protocol):
    """HTTP/1.1 that does not wait for ever for headers, and refuses what is no HTTP in JSON."""

    head_seconds: float
    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.close()
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._limit is not None:
            self._limit.cancel()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Set a limit while headers are due, none while a request is at work, which has limits of its own."""
        at_work = self.cycle is not None and not self.cycle.response_complete
        if at_work and self._limit is not None:
            self._limit.cancel()
            self._limit = None
        elif not at_work and self._limit is None:
            self._limit = self.loop.call_later(self.head_seconds, self._leave)

    def _leave(self) -> None:
        self._limit = None
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
