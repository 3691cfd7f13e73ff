"""`brainq doctor` says what Redis will run into months from now."""

from __future__ import annotations

import pytest

from brainq.cli.doctor.services import check_appendonly, check_memory

WELL = {
    "maxmemory_policy": "noeviction",
    "maxmemory": "1073741824",
    "aof_enabled": "1",
    "aof_last_bgrewrite_status": "ok",
}


def test_a_redis_that_is_set_up_well_is_ok() -> None:
    assert (check_memory(WELL, is_shared=True).level, check_appendonly(WELL).level) == ("ok", "ok")


@pytest.mark.parametrize(("is_shared", "level"), [(True, "warn"), (False, "ok")])
def test_no_limit_of_memory_is_warned_of_where_somebody_runs_the_server(is_shared: bool, level: str) -> None:
    """`brainq_redis_memory_limit_bytes` is not there then, and an alert on it never fires."""
    found = check_memory({**WELL, "maxmemory": "0"}, is_shared=is_shared)
    assert (found.level, "set maxmemory" in found.remedy) == (level, is_shared)


def test_a_file_that_could_not_be_rewritten_is_warned_of() -> None:
    found = check_appendonly({**WELL, "aof_last_bgrewrite_status": "err"})
    assert (found.level, "grows until the disk is full" in found.said) == ("warn", True)
