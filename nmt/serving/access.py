"""Who may ask a server, from which pages, and how often."""

from __future__ import annotations

import hmac
import ipaddress
import math
import re
import time
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from nmt.errors import ConfigError

MAX_CLIENTS = 10_000
"""Clients whose rate is remembered."""


class Keys:
    """API keys.

    Args:
        keys: The keys that are accepted; none lets everybody in.

    Raises:
        ConfigError: One is empty.
    """

    def __init__(self, keys: Collection[str] = ()) -> None:
        if not all(key.strip() for key in keys):
            raise ConfigError("an API key is empty")
        self._keys = [key.encode() for key in keys]

    @property
    def required(self) -> bool:
        """Whether a key is needed."""
        return bool(self._keys)

    def find(self, key: str) -> int | None:
        """The number of a key, None if it is no key; takes the same time whatever is wrong with it."""
        given = key.encode("utf-8", "surrogatepass")
        same = [hmac.compare_digest(given, each) for each in self._keys]
        return same.index(True) if any(same) else None


class Rate:
    """Requests per minute of each client: as many at once, then one each time its share of the minute is over.

    Args:
        per_minute: Requests; None sets no limit.
        clock: Seconds.
    """

    def __init__(self, per_minute: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._free: dict[object, float] = {}  # when a client has used up nothing of its minute

    def wait(self, client: object) -> int:
        """Count a request, if it may be made now.

        Returns:
            Seconds after which to try again; 0 if it was counted.
        """
        if self._per_minute is None:
            return 0
        now, share = self._clock(), 60 / self._per_minute
        free = max(self._free.pop(client, now), now)
        late = free + share - now - 60
        if late > 1e-9:
            self._free[client] = free
            return math.ceil(late)
        while len(self._free) >= MAX_CLIENTS:
            del self._free[next(iter(self._free))]  # who was here longest ago
        self._free[client] = free + share
        return 0


def is_loopback(host: str) -> bool:
    """Whether only programs of the same machine reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Pages:
    """From which web pages a server may be used.

    A browser sends requests of any page it shows, to servers of its own machine too. It says which page in `Origin`,
    and under which name it knows the server in `Host`.

    Args:
        host: Address that the server listens on.
        hosts: Names that it is reached by; needed where `host` is of this machine alone, else none allows all.
        origins: Other origins, such as https://example.org, whose pages may use it; * is all.

    Raises:
        ConfigError: An origin is something else.
    """

    def __init__(self, host: str, hosts: Collection[str] = (), origins: Collection[str] = ()) -> None:
        own = {"localhost", "127.0.0.1", "::1", host} if is_loopback(host) else {host} if hosts else set()
        self._hosts = {name.lower() for name in (*own, *hosts)}
        for origin in origins:
            if origin != "*" and not re.fullmatch(r"https?://[^/\s]+", origin):
                raise ConfigError(f"--allow-origin {origin}: write an origin such as https://example.org, or *")
        self.origins = list(origins)

    def knows_host(self, header: str) -> bool:
        """Whether a `Host` header names this server; a page that made its own name point here does not know it."""
        return not self._hosts or (_name(header) or "") in self._hosts

    def allows_origin(self, origin: str | None, host: str) -> bool:
        """Whether a page may use the server: its own, one of an allowed origin, or what is no web page.

        Args:
            origin: The `Origin` header, None if there is none.
            host: The `Host` header.
        """
        if origin is None or "*" in self.origins or origin in self.origins:
            return True
        scheme, _, rest = origin.partition("://")
        if scheme in ("http", "https"):
            return rest.lower() == host.lower()
        return origin != "null"  # an extension of the browser, which its user installed


def _name(host: str) -> str | None:
    """The name in a `Host` header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
