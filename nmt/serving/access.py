"""Access control: API keys, rate limits, and the web pages that may use a server."""

import hmac
import ipaddress
import math
import re
import time
from collections.abc import Callable, Collection

from nmt.system.errors import ConfigError
from nmt.system.messages import Parameter

_HOST = re.compile(r"(?P<name>[\w.-]+|\[[0-9a-f:.]+\])(:[0-9]*)?", re.ASCII | re.IGNORECASE)
"""A `Host` header: a name or an address, and a port. Nothing else, such as a user, may stand beside them."""
MAX_CLIENTS = 10_000
"""Maximum number of clients whose request rate is remembered."""


class Keys:
    """API keys.

    Args:
        keys: The accepted keys; if there are none, all requests are allowed.

    Raises:
        ConfigError: A key is empty.
    """

    def __init__(self, keys: Collection[str] = ()) -> None:
        if not all(key.strip() for key in keys):
            raise ConfigError("an API key is empty")
        self._keys = [key.encode() for key in keys]

    @property
    def required(self) -> bool:
        """True if requests need a key."""
        return bool(self._keys)

    def find(self, key: str) -> int | None:
        """The index of a key, None if it is not accepted; keys are compared in constant time."""
        key_bytes = key.encode("utf-8", "surrogatepass")
        same = [hmac.compare_digest(key_bytes, accepted) for accepted in self._keys]
        return same.index(True) if any(same) else None


class Rate:
    """A rate limit for each client: a burst of `per_minute` requests, then one every 60 / `per_minute` seconds.

    A client that has rested may thus send up to twice `per_minute` requests in its first minute.

    Args:
        per_minute: Requests per minute; None sets no limit.
        clock: Returns the time in seconds.
    """

    def __init__(self, per_minute: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._free: dict[object, float] = {}  # when a client may send a full burst again

    def wait(self, client: object) -> int:
        """Count a request if it is allowed now.

        Returns:
            Seconds to wait before trying again; 0 if it was counted.
        """
        if self._per_minute is None:
            return 0
        now = self._clock()
        share = 60 / self._per_minute
        free = max(self._free.pop(client, now), now)
        delay = free + share - now - 60
        if delay > 1e-9:
            self._free[client] = free
            return math.ceil(delay)
        while len(self._free) >= MAX_CLIENTS:
            del self._free[next(iter(self._free))]  # the client seen least recently
        self._free[client] = free + share
        return 0


def is_loopback(host: str) -> bool:
    """True if an address can be reached from the same machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_host(header: str) -> bool:
    """True if a `Host` header is well formed: a name or an address, with or without a port."""
    return _HOST.fullmatch(header) is not None


def _is_name(host: str) -> bool:
    """True if a text is the name or the address of a machine, without a port."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return bool(re.fullmatch(r"[\w.-]+", host, re.ASCII))
    return True


class Pages:
    """The web pages that may use a server.

    A browser sends requests for any page it shows, even to servers on its own machine. `Origin` names the origin of
    the page, `Host` the server as the page addressed it.

    Args:
        host: Address that the server listens on.
        hosts: More names that it is reached by. If there are none, any name is allowed, unless `host` is a loopback
            address.
        origins: Other origins, such as https://example.org, whose pages may use it; * allows all.

    Raises:
        ConfigError: An origin or a name is invalid.
    """

    def __init__(self, host: str, hosts: Collection[str] = (), origins: Collection[str] = ()) -> None:
        hosts_of_page = {"localhost", "127.0.0.1", "::1", host} if is_loopback(host) else {host} if hosts else set()
        self._hosts = {name.lower().strip("[]") for name in (*hosts_of_page, *hosts)}
        for name in hosts:
            if not _is_name(name):
                given = Parameter("allowed_hosts", [name])
                raise ConfigError("{given}: write a name such as mt.example.org, without a port", given=given)
        for origin in origins:
            if origin != "*" and not re.fullmatch(r"https?://[^/\s]+", origin):
                given = Parameter("allowed_origins", [origin])
                raise ConfigError("{given}: write an origin such as https://example.org, or *", given=given)
        self.origins = list(origins)

    def allows_host(self, header: str) -> bool:
        """True if a `Host` header is well formed and names this server; protects against DNS rebinding."""
        match = _HOST.fullmatch(header)
        name = match["name"].lower().strip("[]") if match else ""
        if not self._hosts:
            return bool(match) or not header
        return name in self._hosts

    def allows_origin(self, origin: str | None, host: str) -> bool:
        """True if a request comes from the server's own page, an allowed origin, or a client that is not a web page.

        Args:
            origin: The `Origin` header, None if there is none.
            host: The `Host` header.
        """
        if origin is None or "*" in self.origins or origin in self.origins:
            return True
        scheme, _, rest = origin.partition("://")
        if scheme in ("http", "https"):
            return rest.lower() == host.lower()
        return origin != "null"  # a browser extension, which the user installed
