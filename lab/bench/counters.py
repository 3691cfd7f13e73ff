"""What processes and Redis have used: CPU time, commands, bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainq.client.connection import wiring_of
from lab.bench.stage import Stage

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
TOP_COMMANDS = 15


@dataclass(frozen=True, slots=True)
class Counters:
    """A reading of all counters; the difference of two is what happened between them.

    cpu_s      by process name
    commands   by name, those that scripts call included
    redis      round_trips (reads from client sockets), bytes_in, bytes_out, aof_bytes
    """

    cpu_s: Mapping[str, float]
    commands: Mapping[str, int]
    redis: Mapping[str, int]

    def since(self, before: Counters) -> Counters:
        return Counters(
            {name: value - before.cpu_s[name] for name, value in self.cpu_s.items()},
            {name: value - before.commands.get(name, 0) for name, value in self.commands.items()},
            {name: value - before.redis[name] for name, value in self.redis.items()},
        )


def read_counters(stage: Stage) -> Counters:
    """Read them now. Costs Redis three commands."""
    client = wiring_of(stage.client).state.redis
    stats = client.info("stats")
    commands = client.info("commandstats")
    return Counters(
        cpu_s={name: cpu_s(pid) for name, pid in stage.pids().items()},
        commands={name.removeprefix("cmdstat_"): int(row["calls"]) for name, row in commands.items()},
        redis={
            "round_trips": int(stats["total_reads_processed"]),
            "bytes_in": int(stats["total_net_input_bytes"]),
            "bytes_out": int(stats["total_net_output_bytes"]),
            "aof_bytes": int(client.info("persistence")["aof_current_size"]),
        },
    )


def cpu_s(pid: int) -> float:
    """Return the user and system CPU time of a process, with all its threads, in seconds. The resolution is 10 ms."""
    # The name in brackets may hold spaces: what follows it is counted, utime and stime being 14 and 15 of all.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def per_turn(used: Counters, turns: int, *, own_commands: int) -> dict[str, Any]:
    """Return the use of Redis per turn. `own_commands` (HGET) were sent by the benchmark, not by the engine.

    `commands` counts the commands inside scripts, and each script as one more.
    """
    commands = dict(used.commands)
    commands["hget"] = commands.get("hget", 0) - own_commands
    top = sorted(commands.items(), key=lambda item: -item[1])[:TOP_COMMANDS]
    return {
        "scripts": round((commands.get("evalsha", 0) + commands.get("eval", 0)) / turns, 2),
        "round_trips": round((used.redis["round_trips"] - own_commands) / turns, 2),
        "commands": round(sum(commands.values()) / turns, 1),
        "bytes_in": round(used.redis["bytes_in"] / turns),
        "bytes_out": round(used.redis["bytes_out"] / turns),
        "aof_bytes": round(used.redis["aof_bytes"] / turns),
        "top_commands": {name: round(count / turns, 2) for name, count in top if count > 0},
    }
