"""Bugs where Postgres fails over: hosts, connections that leave the pool, statements that run again, lost rows."""

from __future__ import annotations

from lab.mutants.bug import Bug

SQL = "brainq/adapters/sql"
DATABASE, FATES, POSTGRES = f"{SQL}/database.py", f"{SQL}/fates.py", f"{SQL}/postgres.py"
URLS = ("tests/unit/adapters/sql/test_sql_url.py::test_what_the_driver_is_given",)
FATE = ("tests/unit/adapters/sql/test_fates.py",)
PAIR = "tests/integration/adapters/sql/test_failover.py"
DEMOTED = (f"{PAIR}::test_a_server_that_becomes_read_only_leaves_the_pool",)
SILENT = (f"{PAIR}::test_a_host_that_never_answers_is_waited_for_once",)
CUT = ("tests/integration/adapters/sql/test_cut_commits.py",)
REPLICAS = ("tests/unit/cli/test_check_replication.py",)
CALLS = "tests/integration/engine/test_engine_calls.py"
UPKEEP = "tests/integration/engine/test_engine_upkeep.py"

BUGS = (
    Bug(
        "failover: several hosts, and the first that answers is taken",
        f"{SQL}/sql_url.py",
        '"read-write")',
        '"any")',
        URLS,
    ),
    Bug(
        "failover: a server that accepts no writes is kept", FATES, '_READ_ONLY = "25006"', '_READ_ONLY = "25007"', FATE
    ),
    Bug("failover: a server that shuts down is kept", FATES, '("08", "57P", "25P03")', '("08", "25P03")', FATE),
    Bug(
        "failover: a silent server is waited for twice", FATES, '        return "silent"', '        return "cut"', FATE
    ),
    Bug(
        "failover: a demoted server stays in the pool",
        f"{SQL}/engine.py",
        "        record.invalidate()",
        "        pass",
        DEMOTED,
    ),
    Bug(
        "failover: a refused try of a write leaves the pool as it is",
        f"{SQL}/engine.py",
        '        event.listen(engine, "handle_error", _leave_server)\n',
        "",
        DEMOTED,
    ),
    Bug(
        "failover: the others of a cut connection stay",
        DATABASE,
        "        pool._invalidate(connection, error)",
        "        connection.invalidate(error)",
        (f"{PAIR}::test_a_promotion_costs_no_statement_and_the_doctor_names_each_host",),
    ),
    Bug("failover: each connect waits for a dead host", POSTGRES, "= _place_of(connection, options)", "= 0", SILENT),
    Bug(
        "failover: a write of unknown outcome runs again",
        DATABASE,
        'if is_repeatable else {"read-only"}',
        'if is_repeatable else {"read-only", "cut"}',
        CUT,
    ),
    Bug(
        "failover: a write that may run again does not",
        DATABASE,
        "durably=durably, is_repeatable=True)",
        "durably=durably, is_repeatable=False)",
        CUT,
    ),
    Bug(
        "failover: an intent of another claim is taken for one's own",
        f"{SQL}/repositories/calls.py",
        ' and found["owner"] == intent["owner"]',
        "",
        CUT,
    ),
    Bug(
        "failover: a budget is raised again after an answer was lost",
        f"{SQL}/repositories/budgets.py",
        '(found["raised_usd"], found["raised_by"]) == (after, by)',
        "False",
        CUT,
    ),
    Bug(
        "failover: a write runs again if SQL has lost its intent",
        "brainq/engine/upkeep/lost_calls.py",
        " and facts.has_begun:",
        " and False:",
        (f"{CALLS}::test_p3_a_write_that_began_and_whose_intent_sql_has_lost_is_unknown",),
    ),
    Bug(
        "failover: a turn whose end SQL has lost runs again",
        "brainq/engine/people/lost_turns.py",
        'elif word == "over" and self._ends is not None:',
        'elif word == "never":',
        (f"{UPKEEP}::test_the_end_that_sql_lost_in_a_failover_is_written_again_and_the_turn_does_not_run_again",),
    ),
    Bug(
        "failover: doctor takes commits that wait for nobody for safe",
        "brainq/cli/doctor/replication.py",
        " or found.commits in _NO_WAIT:\n        lost",
        ":\n        lost",
        REPLICAS,
    ),
    Bug(
        "failover: doctor takes an unreadable standby for one",
        "brainq/cli/doctor/replication.py",
        "    if all(standby.sync is None for standby in found.standbys):",
        "    if not found.standbys:",
        REPLICAS,
    ),
)
