"""Bugs of `brainq.testing`: what would let a user's wrong test pass."""

from __future__ import annotations

from lab.mutants.bug import Bug

RUNS = ("tests/integration/testing/test_runs.py",)
TOOLS = ("tests/integration/testing/test_tools.py",)

BUGS = (
    Bug(
        "time jumps over what becomes due",
        "brainq/testing/runs.py",
        "            jump_ms = self._next_jump_ms(left_ms, least_ms)\n",
        "            jump_ms = left_ms\n",
        RUNS,
    ),
    Bug(
        "a fault that never happened is not reported",
        "brainq/testing/runs.py",
        "            for moment in self._moments.planned:\n",
        "            for moment in self._moments.planned[:0]:\n",
        RUNS,
    ),
    Bug(
        "a kill after the function comes before it",
        "brainq/testing/moments.py",
        '        self._moments.come(tool.name, "start")\n',
        '        self._moments.come(tool.name, "start")\n        self._moments.come(tool.name, "end")\n',
        RUNS,
    ),
    Bug(
        "each call gets the first result",
        "brainq/testing/moments.py",
        "            self._given[key] = number + 1\n",
        "            self._given[key] = number\n",
        RUNS,
    ),
    Bug(
        "a tool of its own process leaves the test's",
        "brainq/testing/moments.py",
        "super().run(_in_thread(tool), arguments",
        "super().run(tool, arguments",
        RUNS,
    ),
    Bug(
        "an approval that the test denies is given",
        "brainq/testing/tools.py",
        "            t.approve() if approve else t.deny()\n",
        "            t.approve()\n",
        TOOLS,
    ),
    Bug(
        "a cassette shows the secrets of arguments",
        "brainq/testing/cassette.py",
        "HIDDEN if is_secret_name(key) and item else _hidden(item)",
        "_hidden(item)",
        ("tests/integration/testing/test_cassette.py",),
    ),
)
