"""Checks of SQL and its schema, and of the webhooks' deliveries that it keeps."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

from brainq.contracts.webhook import parse_webhooks
from brainq.observe.logs import without_password
from brainq.settings.deployment import Settings
from brainq.wiring.preflight import Check, fail, ok, warn
from brainq.wiring.preflight import check_sql as check_answer


def check_sql(settings: Settings) -> Generator[Check, None, bool]:
    """Looks only: neither a database file nor a schema is made. True: what is in it can be read."""
    from brainq.store.engine import make_engine, unsafe_settings
    from brainq.store.migrations import HEAD, revision

    url = settings.sql_url.get_secret_value()
    answer = check_answer(url)
    sqlite = url.removeprefix("sqlite:///")
    if answer.level == "ok" and sqlite != url and not Path(sqlite).exists():
        yield warn(
            "sql",
            f"{without_password(url)} is not there yet",
            "the first worker or submit makes it, or `brainq db upgrade`",
        )
        return False
    yield answer
    if answer.level != "ok":
        return False
    engine = make_engine(url)
    try:
        current = revision(engine)
        unsafe = unsafe_settings(engine)
    finally:
        engine.dispose()
    if unsafe:
        yield warn(
            "commits",
            f"{' and '.join(f'{name}=off' for name in unsafe)}: a power cut may take back accepted turns and intents",
            f"ALTER SYSTEM SET {unsafe[0]} = on; SELECT pg_reload_conf();",
        )
    if current == HEAD:
        yield ok("schema", f"revision {current}")
    else:
        yield fail("schema", f"revision {current or 'none'}, brainq needs {HEAD}", "run `brainq db upgrade`")
    return current == HEAD


def check_webhooks(settings: Settings) -> Iterator[Check]:
    """Nothing of a deployment without webhooks. The schema is this brainq's."""
    from brainq.store.store import Store

    webhooks = parse_webhooks(settings.webhooks.get_secret_value())
    if not webhooks:
        return
    with Store.open(settings.sql_url.get_secret_value(), migrate=False) as store:
        unsettled = store.deliveries.unsettled()
    summary = f"{len(webhooks)} configured, {unsettled['pending']} to be sent, {unsettled['dead']} dead"
    if unsettled["dead"]:
        yield warn(
            "webhooks", summary, "`brainq webhook list --state dead` says why; `brainq webhook retry all` sends again"
        )
    else:
        yield ok("webhooks", summary)
