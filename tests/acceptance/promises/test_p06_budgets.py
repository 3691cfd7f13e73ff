"""P6 over several processes: the maximum is granted, and not one more."""

from __future__ import annotations

import subprocess
import sys

from brainq.contracts.turn import Limits
from tests.support.world import ROOT, World

CLAIMER = """
import sys, threading
from brainq.contracts.turn import Limits
from brainq.runtime.settings.deployment import load_settings
from brainq.app.wiring import Wiring
from tests.support.brains.obedient import brain
wiring, session, me = Wiring(load_settings(), brain), sys.argv[1], sys.argv[2]
got, barrier = [], threading.Barrier(10)
def claim(n):
    barrier.wait()
    for i in range(10):
        got.extend(wiring.state.turns.claim_budget(session, "turn-1", "tool_calls", [f"{me}-{n}-{i}"]))
wiring.state.redis.ping()
print("ready", flush=True); sys.stdin.readline()
threads = [threading.Thread(target=claim, args=(n,)) for n in range(10)]
[t.start() for t in threads]; [t.join() for t in threads]
print(got.count("CLAIMED"), got.count("SPENT"))
wiring.close()
"""


def test_two_hundred_claims_of_two_processes(calm: World, sid: str) -> None:
    calm.wiring.state.turns.create_budget(sid, "turn-1", Limits(max_tool_calls=73))
    claimers = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER, sid, f"p{n}"],
            env=calm.environment,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(2)
    ]
    for claimer in claimers:
        assert claimer.stdout is not None
        assert claimer.stdout.readline() == "ready\n"
    answers = []
    for claimer in claimers:
        assert claimer.stdin is not None
        claimer.stdin.write("go\n")
        claimer.stdin.flush()
    for claimer in claimers:
        out, _ = claimer.communicate(timeout=30)
        assert claimer.returncode == 0
        answers.append([int(word) for word in out.split()])
    assert sum(claimed for claimed, _ in answers) == 73
    assert sum(spent for _, spent in answers) == 127
    assert calm.wiring.state.turns.budget(sid, "turn-1").tool_calls_used == 73
