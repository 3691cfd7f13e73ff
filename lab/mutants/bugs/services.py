"""Bugs where SQL and Redis are read, tried and refused: poolers, URLs, passwords, refusals and doctor's checks."""

from __future__ import annotations

from lab.mutants.bug import Bug

POSTGRES = "brainq/adapters/sql/postgres.py"
ENGINE = "brainq/adapters/sql/engine.py"
FATES = "brainq/adapters/sql/fates.py"
DATABASE = "brainq/adapters/sql/database.py"
SQL_URL = "brainq/adapters/sql/sql_url.py"
REDIS_URL = "brainq/runtime/settings/redis_url.py"
SHOWN = "brainq/runtime/text/service_url.py"
REFUSALS = "brainq/adapters/sql/refusals.py"
RIGHTS = "brainq/cli/doctor/rights.py"
LIMITS = ("tests/integration/adapters/sql/test_pooler.py::test_limits_are_those_of_the_session_or_of_each_transaction",)
LOST = ("tests/integration/adapters/sql/test_pooler.py",)
SERIAL = (
    "tests/integration/adapters/sql/test_repeats.py::test_the_outcome_of_a_write_is_recorded_after_a_serialization_failure",
)
ALONE = ("tests/integration/adapters/sql/test_repeats.py::test_a_statement_inside_a_transaction_is_not_repeated_alone",)
FOREVER = ("tests/integration/adapters/sql/test_repeats.py::test_a_statement_is_not_repeated_for_ever",)
FREE = ("tests/integration/adapters/sql/test_repeats.py::test_what_was_removed_is_not_left_in_the_files_free_pages",)
ENC = (
    "tests/integration/adapters/sql/test_repeats.py::test_a_database_without_an_encoding_is_refused_with_the_remedy",
)
SHOWNT = ("tests/unit/adapters/sql/test_sql_url.py::test_what_no_driver_takes_is_refused_with_the_remedy",)
SAME = ("tests/unit/test_service_urls.py::test_every_reader_of_a_redis_url_finds_the_same",)
REFUSED = ("tests/unit/test_service_urls.py::test_what_not_all_readers_understand_is_refused_at_the_start_by_each",)
SHOW = ("tests/unit/test_service_urls.py::test_what_is_shown_of_a_url",)
NEVER = ("tests/integration/engine/test_writes_are_tried.py::test_a_refusal_is_never_said_to_be_no_answer",)
ROOM = ("tests/integration/engine/test_writes_are_tried.py::test_a_try_in_sqlite_needs_room_and_leaves_nothing",)
TRY = (
    "tests/integration/engine/test_writes_are_tried.py::test_a_try_leaves_nothing_in_postgres_and_does_not_wait_for_another_try",
)
AGAIN = (
    "tests/integration/engine/test_writes_are_tried.py::test_writes_are_tried_again_at_once_after_they_were_refused",
)
SQL_URLS = ("tests/unit/adapters/sql/test_sql_url.py::test_options_of_the_driver_have_their_types",)
HOSTS = ("tests/unit/adapters/sql/test_sql_url.py::test_what_the_driver_is_given",)
USERS = ("tests/integration/adapters/celery/test_redis_files.py::test_what_a_user_may_not_do_is_named",)

BUGS = (
    Bug(
        "pooler: statements are prepared behind one",
        POSTGRES,
        "            connection.prepare_threshold = None\n",
        "            pass\n",
        LIMITS,
    ),
    Bug(
        "pooler: limits of a transaction outlive it",
        POSTGRES,
        'f"SET LOCAL {name} = {ms}"',
        'f"SET {name} = {ms}"',
        LIMITS,
    ),
    Bug(
        "pooler: without one a session has no limits",
        POSTGRES,
        "        elif self.pooled is False:\n            self._limit_session(connection)",
        "        elif self.pooled is False:\n            pass",
        LIMITS,
    ),
    Bug(
        "pooler: a direct connection is taken for one",
        POSTGRES,
        'f"pg_backend_pid() = {pid}"',
        'f"pg_backend_pid() <> {pid}"',
        LIMITS,
    ),
    Bug(
        "pooler: a lost prepared statement tells nobody",
        ENGINE,
        '    driver.link.note_pooler("a prepared statement was on another server")\n',
        "",
        LOST,
    ),
    Bug(
        "pooler: the connections beside the one that met it stay prepared",
        FATES,
        '{"unprepared", "read-only", "cut", "silent"}',
        '{"read-only", "cut", "silent"}',
        LOST,
    ),
    Bug("repeats: a deadlock or a busy file is final", FATES, '"40001", "40P01", "55P03"', '"55P03"', SERIAL),
    Bug(
        "repeats: a statement of a transaction is repeated alone",
        DATABASE,
        "        self._is_lone = False\n",
        "",
        ALONE,
    ),
    Bug("repeats: without an end", DATABASE, " and time.monotonic() < until", "", FOREVER),
    Bug("sqlite: what is removed stays in free pages", ENGINE, "secure_delete=ON", "secure_delete=OFF", FREE),
    Bug("encoding: a database without one is taken", POSTGRES, '== b"SQL_ASCII"', '== b"NONE"', ENC),
    Bug(
        "url: an option of psycopg's own stays a text",
        SQL_URL,
        "    return int(value)\n",
        "    return value  # type: ignore\n",
        SQL_URLS,
    ),
    Bug(
        "url: the ports of several hosts are lost",
        SQL_URL,
        "str(port or POSTGRES_PORT) for _, port in pairs",
        "str(POSTGRES_PORT) for _, port in pairs",
        HOSTS,
    ),
    Bug(
        "url: more than one @ goes to the driver",
        SQL_URL,
        ' or "@" in hosts + (database or "")',
        "",
        SHOWNT,
    ),
    Bug(
        "url: an @ in a second password ends the first",
        SQL_URL,
        '(is_second and "pass" in name and "@" in value)',
        "False",
        SHOWNT,
    ),
    Bug(
        "url: the database of an option is dropped",
        REDIS_URL,
        "        database = in_path or database\n",
        "        database = in_path\n",
        SAME,
    ),
    Bug(
        "url: a / in a password is a path",
        REDIS_URL,
        'if re.search(r"[/?#]", login):',
        'if re.search(r"[?#]", login):',
        REFUSED,
    ),
    Bug(
        "url: a semicolon in a password reaches kombu bare",
        REDIS_URL,
        "password = f\":{quote(self.password, safe='')}\"",
        "password = f\":{quote(self.password, safe=';')}\"",
        SAME,
    ),
    Bug(
        "password: it ends at the first @",
        SHOWN,
        '    login, at, place = rest.rpartition("@")',
        '    login, at, place = rest.partition("@")',
        SHOW,
    ),
    Bug(
        "password: only that of the login is hidden",
        SHOWN,
        "    if option is not None:\n",
        "    if option is not None and False:\n",
        SHOW,
    ),
    Bug("refusal: a full disk is no answer", REFUSALS, '    "53100": DISK_FULL,\n', "", NEVER),
    Bug(
        "refusal: the disk is not needed for a try",
        REFUSALS,
        'connection.execute("PRAGMA cache_size = 8")',
        'connection.execute("PRAGMA cache_size = 800")',
        ROOM,
    ),
    Bug(
        "refusal: a try waits for another one's row",
        REFUSALS,
        " FOR UPDATE SKIP LOCKED",
        " FOR UPDATE NOWAIT",
        TRY,
    ),
    Bug(
        "refusal: what was refused is believed to be well for seconds",
        "brainq/adapters/sql/store.py",
        "        self._tries_at = 0.0\n        with self._unreachable():\n",
        "        self._tries_at = time.monotonic() + TRY_EVERY_S\n        with self._unreachable():\n",
        AGAIN,
    ),
    Bug(
        "rights: channels of kombu are not asked for",
        RIGHTS,
        '("SUBSCRIBE", pidbox),\n        ("PUBLISH", pidbox, ""),\n        ("PSUBSCRIBE", events),\n',
        "",
        USERS,
    ),
    Bug(
        "rights: what scripts call is not asked for",
        RIGHTS,
        "return [*plain, *called, *broker]",
        "return [*plain, *broker]",
        USERS,
    ),
)
