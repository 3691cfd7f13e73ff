"""SQL URLs: one reading for all that use them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from brainq.adapters.sql.engine import make_engine
from brainq.adapters.sql.sql_url import parse_sql_url
from brainq.errors import SetupError
from brainq.runtime.settings.service_urls import pooled_url


@pytest.mark.parametrize(
    ("url", "arguments"),
    [
        ("postgresql://me@h/db", {"user": "me", "host": "h"}),
        ("postgresql://me:p%40s%2Fs@h:6543/db", {"user": "me", "password": "p@s/s", "host": "h", "port": 6543}),
        ("postgresql://h1:5432,h2:5433/db", {"host": "h1,h2", "port": "5432,5433"}),
        ("postgresql://h1,h2/db", {"host": "h1,h2", "port": "5432,5432"}),
        ("postgresql://me@[::1]:5433/db", {"user": "me", "host": "::1", "port": 5433}),
        ("postgresql:///db?host=/tmp/a&host=/tmp/b", {"host": "/tmp/a,/tmp/b", "port": ","}),
        ("postgresql://me@corp:pw@h/db", {"user": "me@corp", "password": "pw", "host": "h"}),
        ("postgresql://h/db?sslmode=require", {"host": "h", "sslmode": "require"}),
    ],
)
def test_what_the_driver_is_given(url: str, arguments: dict[str, Any]) -> None:
    engine = make_engine(url)

    given = engine.dialect.create_connect_args(engine.url)[1]
    assert {name: value for name, value in given.items() if name != "context"} == {**arguments, "dbname": "db"}


@pytest.mark.parametrize(
    ("query", "options", "pooled"),
    [
        ("prepare_threshold=0", {"prepare_threshold": 0}, None),
        ("prepare_threshold=none", {"prepare_threshold": None}, None),
        ("pooled=true&prepare_threshold=7", {"prepare_threshold": 7}, True),
        ("pooled=off", {}, False),
        ("", {}, None),
    ],
)
def test_options_of_the_driver_have_their_types(query: str, options: dict[str, Any], pooled: bool | None) -> None:
    read = parse_sql_url(f"postgresql://h/db?{query}")

    assert (read.options, read.pooled, dict(read.url.query)) == (options, pooled, {})


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("postgresql://h/db?sslmod=require", "did you mean 'sslmode'"),
        ("postgresql://h/db?autocommit=1", "does not know"),
        ("postgresql://h/db?prepare_threshold=often", "number of executions"),
        ("postgresql://h/db?pooled=maybe", "`true` or `false`"),
        ("postgresql://h:port/db", "hosts of the SQL URL"),
        ("postgresql://h1,,h2/db", "hosts of the SQL URL"),
        ("postgresql://h:99999/db", "hosts of the SQL URL"),
        ("postgresql://me:p@ss@h/db", "percent-encode"),
        ("postgresql://me:p@s/s@h", "more than one @"),
        ("postgresql://me:a@b?password=c@h/db", "more than one @"),
        ("sqlite:///a.db?cache=shared", "'cache'"),
        ("sqlite://a.db", "three slashes"),
    ],
)
def test_what_no_driver_takes_is_refused_with_the_remedy(url: str, remedy: str) -> None:
    with pytest.raises(SetupError, match=remedy):
        make_engine(url)


@pytest.mark.parametrize(
    ("url", "pooled", "expected"),
    [
        ("postgresql://h/db", True, "postgresql://h/db?pooled=true"),
        ("postgres://u:a?b@h/db?sslmode=require", False, "postgres://u:a?b@h/db?sslmode=require&pooled=false"),
        ("postgresql://h/db?pooled=false", True, "postgresql://h/db?pooled=false"),
        ("postgresql://h/db", None, "postgresql://h/db"),
        ("sqlite:///a.db", True, "sqlite:///a.db"),
    ],
)
def test_the_setting_is_an_option_of_each_postgres_url_that_does_not_have_it(
    url: str, pooled: bool | None, expected: str
) -> None:
    assert pooled_url(SecretStr(url), pooled) == expected
