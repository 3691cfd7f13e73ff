"""SQL URLs: one reading for all that use them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from brainq.adapters.sql.engine import make_engine
from brainq.adapters.sql.sql_url import parse_sql_url
from brainq.errors import SetupError
from brainq.runtime.settings.service_urls import pooled_url

TO_PRIMARY = {"target_session_attrs": "read-write"}


@pytest.mark.parametrize(
    ("url", "arguments"),
    [
        ("postgresql://me@h/db", {"user": "me", "host": "h"}),
        ("postgresql://me:p%40s%2Fs@h:6543/db", {"user": "me", "password": "p@s/s", "host": "h", "port": 6543}),
        ("postgresql://h1:5432,h2:5433/db", {"host": "h1,h2", "port": "5432,5433", **TO_PRIMARY}),
        ("postgresql://h1,h2/db", {"host": "h1,h2", "port": "5432,5432", **TO_PRIMARY}),
        ("postgresql+psycopg:///db?host=a:1&host=b:2", {"host": "a,b", "port": "1,2", **TO_PRIMARY}),
        ("postgresql:///db?host=a,b&port=1,2", {"host": "a,b", "port": "1,2", **TO_PRIMARY}),
        ("postgresql://[::1]:1,h/db", {"host": "::1,h", "port": "1,5432", **TO_PRIMARY}),
        ("postgresql:///db?hostaddr=10.0.0.1,10.0.0.2", {"hostaddr": "10.0.0.1,10.0.0.2", **TO_PRIMARY}),
        (
            "postgresql://a,b/db?target_session_attrs=any",
            {"host": "a,b", "port": "5432,5432", "target_session_attrs": "any"},
        ),
        ("postgresql://me@[::1]:5433/db", {"user": "me", "host": "::1", "port": 5433}),
        ("postgresql:///db?host=/tmp/a&host=/tmp/b", {"host": "/tmp/a,/tmp/b", "port": "5432,5432", **TO_PRIMARY}),
        ("postgresql://me@corp:pw@h/db", {"user": "me@corp", "password": "pw", "host": "h"}),
        ("postgresql://h/db?sslmode=require", {"host": "h", "sslmode": "require"}),
    ],
)
def test_what_the_driver_is_given(url: str, arguments: dict[str, Any]) -> None:
    engine = make_engine(url)

    given = engine.dialect.create_connect_args(engine.url)[1]
    assert {name: value for name, value in given.items() if name != "context"} == {**arguments, "dbname": "db"}
    again = make_engine(engine.url.render_as_string(hide_password=False))
    assert again.url == engine.url, "encryption and cells open the URL of an engine"


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
        ("postgresql:///db?host=a:b&host=c", "hosts of the SQL URL"),
        ("postgresql://a,b/db?port=5433", "write each port after its host"),
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
