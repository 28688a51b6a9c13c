"""Access control: rates, keys, host names, origins and limits."""

from pathlib import Path

import pytest
from real_server import golden  # noqa: F401  (skips where the extra is missing)

import nmt
from nmt.serving.access import MAX_CLIENTS, Keys, Pages, Rate, is_loopback
from nmt.serving.request_limits import Limits
from nmt.serving.serve import read_keys
from nmt.system.errors import ConfigError


def test_a_rate_is_a_burst_and_then_a_steady_flow() -> None:
    now = 0.0
    rate = Rate(6, lambda: now)
    assert [rate.wait("a") for _ in range(7)] == [0] * 6 + [10]
    assert rate.wait("b") == 0
    now = 9.5
    assert rate.wait("a") == 1
    now = 10.0
    assert [rate.wait("a") for _ in range(2)] == [0, 10]
    now = 1000.0
    assert [rate.wait("a") for _ in range(7)] == [0] * 6 + [10]
    now = 3000.0  # rested: up to twice the rate in the first minute, no more
    counted = 0
    for half in range(120):
        now = 3000 + half / 2
        counted += rate.wait("a") == 0
    assert counted == 2 * 6 - 1
    assert [Rate(None).wait("a") for _ in range(3)] == [0] * 3


def test_the_number_of_remembered_clients_is_bounded() -> None:
    rate = Rate(1, lambda: 0.0)
    for number in range(MAX_CLIENTS + 5):
        assert rate.wait(number) == 0
    assert rate.wait(MAX_CLIENTS) == 60
    assert rate.wait(0) == 0  # it was forgotten


def test_keys() -> None:
    keys = Keys(["a", "bé"])
    assert [keys.find(key) for key in ("a", "bé", "", "b", "\ud800")] == [0, 1, None, None, None]
    assert keys.required
    assert not Keys().required
    assert Keys().find("") is None
    with pytest.raises(ConfigError, match="API key"):
        Keys(["a", " "])


def test_a_file_of_keys_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("secret\n\n other \n", encoding="utf-8-sig")
    assert read_keys(tmp_path / "keys") == ["secret", "other"]


def test_lines_of_a_file_of_keys_that_begin_with_a_number_sign_are_comments(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("# my keys\nsec#ret\n #old\n", encoding="utf-8-sig")
    assert read_keys(tmp_path / "keys") == ["sec#ret"]
    (tmp_path / "keys").write_text("# none yet\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"has no API key; write one per line$"):
        read_keys(tmp_path / "keys")


NO_HOSTS = (
    *("evil.com@localhost", "localhost@evil.com", "user:pass@localhost", "@localhost", "localhost:80@localhost"),
    *("localhost:x", "localhost:80:80", "localhost:-1", "::1", "[::1", "::1]", "[localhost]", "[::1]x", "localhost/"),
    *(
        "localhost?",
        "localhost#",
        "localhost,localhost",
        "local host",
        "localhost\\",
        "http://localhost",
        "%6cocalhost",
    ),
)


@pytest.mark.parametrize(
    ("host", "hosts", "header", "known"),
    [
        ("127.0.0.1", [], "127.0.0.1:5000", True),
        ("127.0.0.1", [], "LOCALHOST", True),
        ("::1", [], "[::1]:5000", True),
        ("127.0.0.1", [], "mt.example", False),
        ("127.0.0.1", ["MT.example"], "mt.example:80", True),
        ("0.0.0.0", [], "mt.example", True),
        ("0.0.0.0", ["mt.example"], "other.example", False),
        ("127.0.0.1", [], "", False),
        ("127.0.0.1", [], "[", False),
        *(("127.0.0.1", [], header, False) for header in NO_HOSTS),
        *(("0.0.0.0", [], header, False) for header in NO_HOSTS),
        ("0.0.0.0", [], "", True),  # as without the header in HTTP/1.0
        ("0.0.0.0", [], "[2001:db8::1]:80", True),
        ("0.0.0.0", ["2001:DB8::1"], "[2001:db8::1]", True),
        ("0.0.0.0", ["[2001:db8::1]"], "[2001:db8::1]:5000", True),
        ("127.0.0.1", [], "localhost:", True),
    ],
)
def test_host_names(host: str, hosts: list[str], header: str, known: bool) -> None:
    assert Pages(host, hosts).allows_host(header) is known


@pytest.mark.parametrize(
    "name", ["mt.example:5000", "https://mt.example", "a b", "", "[::1]:80", "user@mt.example", "*"]
)
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="`allowed_hosts="):
        Pages("127.0.0.1", [name])


@pytest.mark.parametrize("origin", ["mt.example", "https://mt.example/", "ftp://mt.example", "https://", "**"])
def test_an_invalid_origin_is_refused(origin: str) -> None:
    with pytest.raises(ConfigError, match="`allowed_origins="):
        Pages("127.0.0.1", origins=[origin])


def test_loopback_addresses() -> None:
    hosts = ["127.0.0.1", "127.8.8.8", "::1", "localhost", "0.0.0.0", "example.org"]
    assert [host for host in hosts if is_loopback(host)] == hosts[:4]


def test_invalid_limits_are_refused() -> None:
    with pytest.raises(ConfigError, match="`max_queue=5` is less than `max_sentences=6`"):
        Limits(max_queue=5, max_sentences=6)


@pytest.mark.parametrize("name", ["max_characters", "max_sentences", "max_queue", "requests_per_minute"])
def test_limits_from_python_are_at_least_one(name: str) -> None:
    with pytest.raises(ConfigError, match=f"`{name}=-1`: must be at least 1"):
        nmt.serve("nowhere", **{name: -1})
