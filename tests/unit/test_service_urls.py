"""URLs of Redis, SQL and brokers: each is read alike by all that use it, and none shows any part of a password."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kombu.utils.url import parse_url as kombu_parse_url
from pydantic import SecretStr

from brainq.adapters.celery.app import celery_url, make_app
from brainq.adapters.redis.async_connection import AsyncConnection
from brainq.adapters.redis.connection import make_client
from brainq.adapters.sql.engine import make_engine
from brainq.app.wiring.preflight import check_broker, check_redis, check_sql
from brainq.engine.tools.mcp.server import McpServer
from brainq.errors import BrainqError, SetupError
from brainq.runtime.settings.deployment import Settings, load_settings
from brainq.runtime.text.service_url import without_password

Place = tuple[str, int, int, str, str]
TLS = "rediss://h/0?ssl_cert_reqs="


def options_of(pool: Any) -> dict[str, Any]:
    return pool.connection_kwargs


def place_of_redis_py(options: dict[str, Any]) -> Place:
    place = options.get("path") or options.get("host", "localhost")
    login = options.get("username") or "", options.get("password") or ""
    return (place, options.get("port", 0), options["db"], *login)


def place_of_kombu(url: str) -> Place:
    read = kombu_parse_url(celery_url(url))
    login = read["userid"] or "", read["password"] or ""
    return (read["hostname"], read["port"], int(read["virtual_host"] or 0), *login)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("redis://h", ("h", 6379, 0, "", "")),
        ("redis://h/", ("h", 6379, 0, "", "")),
        ("redis://h:1/3", ("h", 1, 3, "", "")),
        ("redis://h?db=9", ("h", 6379, 9, "", "")),
        ("redis://h/9?db=9", ("h", 6379, 9, "", "")),
        ("redis:///4", ("localhost", 6379, 4, "", "")),
        ("redis://:p%40s%2Fs@h/0", ("h", 6379, 0, "", "p@s/s")),
        ("redis://me:p@ss;word@h/0", ("h", 6379, 0, "me", "p@ss;word")),
        ("redis://me:p%25ss@h/0", ("h", 6379, 0, "me", "p%ss")),
        ("rediss://me:pw@h:2/1?ssl_cert_reqs=none", ("h", 2, 1, "me", "pw")),
    ],
)
def test_every_reader_of_a_redis_url_finds_the_same(url: str, place: Place) -> None:
    with make_app(load_settings(redis_url=url)) as app:
        assert place_of_kombu(str(app.conf.broker_url)) == place
        assert ";" not in str(app.conf.broker_url), "kombu would take what follows for another broker"
    streams: Any = AsyncConnection(url)
    assert place_of_redis_py(options_of(make_client(url).connection_pool)) == place
    assert place_of_redis_py(options_of(streams._pool)) == place


def test_a_unix_socket_is_the_same_for_all() -> None:
    url = "unix://me:p%40@/tmp/x%20y.sock?db=2"
    assert place_of_redis_py(options_of(make_client(url).connection_pool)) == ("/tmp/x y.sock", 0, 2, "me", "p@")
    assert celery_url(url) == "redis+socket://me:p%40@/tmp/x%20y.sock?virtual_host=2"


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("CERT_NONE", ssl.CERT_NONE),
        ("none", ssl.CERT_NONE),
        ("CERT_OPTIONAL", ssl.CERT_OPTIONAL),
        ("Required", ssl.CERT_REQUIRED),
    ],
)
def test_celerys_and_redis_pys_spellings_of_a_certificate_are_taken_by_both(
    spelling: str, expected: ssl.VerifyMode
) -> None:
    connection: Any = make_client(TLS + spelling).connection_pool.make_connection()
    assert connection.cert_reqs == expected
    assert kombu_parse_url(celery_url(TLS + spelling))["ssl"]["ssl_cert_reqs"] == expected


REFUSED = [
    ("redis://h/0?protocol=3", "'protocol'"),
    ("redis://h/0?health_check_interval=10", "'health_check_interval'"),
    ("redis://h/0?password=SECRET", "do not both accept"),
    ("redis://h/abc", "database is not a number"),
    ("redis://h/0/1", "database is not a number"),
    ("redis://h/1?db=2", "two databases"),
    ("redis://h:port/0", "host or port"),
    ("redis://h:70000/0", "host or port"),
    ("redis://a:1,b:2/0", "host or port"),
    ("redis://a:1;redis://b:2", "host or port"),
    ("redis://h/0?ssl_cert_reqs=none", "write rediss://"),
    (TLS + "never", "none, optional, required"),
    ("redis://me:a/b@h/0", "percent-encode"),
    ("redis://me:a#b@h/0", "percent-encode"),
    ("redis://me:a?b@h/0", "percent-encode"),
    ("unix://x.sock", "unix:///path"),
    ("sentinel://h:1/m?db=1", "without options"),
    ("sentinel://me:a@b@h:1/m", "percent-encode"),
]


@pytest.mark.parametrize(("url", "remedy"), REFUSED)
def test_what_not_all_readers_understand_is_refused_at_the_start_by_each(url: str, remedy: str) -> None:
    readers: list[Callable[[str], object]] = [
        make_client,
        AsyncConnection,
        celery_url,
        lambda url: load_settings(redis_url=url),
        lambda url: load_settings(broker_url=url, doorbell="outbox"),
        lambda url: load_settings(cells=f'{{"a": {{"redis": "{url}", "sql": "sqlite:////tmp/a.db"}}}}'),
    ]
    for reader in readers:
        with pytest.raises(SetupError, match=re.escape(remedy)):
            reader(url)
    found = check_redis(url)
    assert (found.level, remedy in found.said) == ("FAIL", True)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h/0", "redis://h/0"),
        ("postgresql://me@h/db?sslmode=require", "postgresql://me@h/db?sslmode=require"),
        ("postgresql://me:pw@h/db", "postgresql://me:***@h/db"),
        ("postgresql://me:p@w/#?@h/db", "postgresql://me:***@h/db"),
        ("redis://:pw@h/0", "redis://:***@h/0"),
        ("postgresql://h/db?user=me&password=a&b=c#d", "postgresql://h/db?user=me&password=***"),
        ("postgresql://h/db?password=a@b", "postgresql://***"),
        ("postgresql://me@/db?host=/tmp/x@y", "postgresql://***@y"),
        ("me:pw@h:4317", "me:***@h:4317"),
        ("http://collector:4317", "http://collector:4317"),
    ],
)
def test_what_is_shown_of_a_url(url: str, shown: str) -> None:
    assert without_password(url) == shown


MARKS = st.sampled_from(["QXA", "QXB", "QXC"])
SPECIAL = st.sampled_from([*"@:/?#&%;= +[]\\,", "%41", "://", "?password=", "&db=", "//"])
PASSWORDS = st.lists(st.tuples(MARKS, SPECIAL), min_size=1, max_size=4).map(
    lambda parts: "".join(mark + special for mark, special in parts) + "QXE"
)
SHAPES = [
    "postgresql://me:{}@127.0.0.1:1/db",
    "postgres://:{}@127.0.0.1:1/db?sslmode=disable",
    "postgresql://127.0.0.1:1/db?user=me&password={}",
    "postgresql://me@127.0.0.1:1/db?sslpassword={}&connect_timeout=1",
    "postgresql://me:{}@127.0.0.1:1,127.0.0.1:2/db",
    "redis://me:{}@127.0.0.1:1/0",
    "redis://:{}@127.0.0.1:1/0?db=0",
    "redis://127.0.0.1:1/0?password={}",
    "rediss://me:{}@127.0.0.1:1/0",
    "unix://me:{}@/tmp/none.sock",
    "sentinel://me:{}@127.0.0.1:1/m",
    "amqp://me:{}@127.0.0.1:1/v",
    "https://me:{}@127.0.0.1:1/mcp",
]


def told_of(url: str) -> list[str]:
    """All that is said about a URL before anything is connected to, with what an error comes from."""
    readers: list[Callable[[], object]] = [
        lambda: make_engine(url).url,
        lambda: load_settings(redis_url=url),
        lambda: load_settings(broker_url=url, doorbell="outbox"),
        lambda: load_settings(cells=f'{{"a": {{"redis": "{url}", "sql": "{url}"}}}}'),
        lambda: len(celery_url(url)),
        lambda: McpServer(name="m", url=url).name,
    ]
    told = [without_password(url)]
    for reader in readers:
        try:
            found = repr(reader())
        except BrainqError as error:
            told += [str(error), str(error.__cause__)]
        else:
            told.append(without_password(found))
    return told


@example(SHAPES[0], "QXA@QXB?password=QXE", False)
@settings(max_examples=60)
@given(st.sampled_from(SHAPES), PASSWORDS, st.booleans())
def test_no_part_of_a_password_is_shown(shape: str, password: str, encoded: bool) -> None:
    url = shape.format(quote(password, safe="") if encoded else password)

    assert [text for text in told_of(url) if "QX" in text] == []


@settings(max_examples=40)
@given(st.sampled_from(SHAPES[:6]), PASSWORDS)
def test_an_encoded_password_reaches_the_driver_whole(shape: str, password: str) -> None:
    url = shape.format(quote(password, safe=""))
    if url.startswith("redis"):
        assert options_of(make_client(url).connection_pool)["password"] == password
        assert kombu_parse_url(celery_url(url))["password"] == password
        return
    engine = make_engine(url)
    arguments = engine.dialect.create_connect_args(engine.url)[1]
    assert password in (arguments.get("password"), arguments.get("sslpassword"))


@pytest.mark.parametrize("password", ["QXA", "QXA%40QXB", "QXA#QXB", "QXA/QXB", "QXA@QXB", "QXA?QXB=1", "QXA:QXB"])
@pytest.mark.parametrize("shape", ["postgresql://me:{}@127.0.0.1:1/db", "redis://me:{}@127.0.0.1:1/0"])
def test_a_check_of_a_server_that_is_away_shows_no_part_either(shape: str, password: str) -> None:
    url = shape.format(password)
    checks = [check_sql(url)] if shape.startswith("postgresql") else [check_redis(url)]
    if "#" not in password and "/" not in password and "?" not in password and shape.startswith("redis"):
        checks.append(check_broker(Settings(broker_url=SecretStr(url), doorbell="outbox")))

    for check in checks:
        assert check.level == "FAIL"
        assert "QX" not in check.said + check.remedy
