"""A payment tool under disordered streams of three wires, with real workers: each payment is made exactly once."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from pathlib import Path
from random import Random

from brainq.contracts.status import Ending
from tests.integration.engine.models.wire_server import Exchange, WireServer
from tests.support.brains import diary
from tests.support.brains.paying import WIRES
from tests.support.world import World
from tests.unit.engine.models.disordered_streams import STREAMS, Disordered, MadeCall
from tests.unit.engine.models.test_disordered_streams import read

CASES = 8  # of each wire
SIGNED = b'"extra_content": {"google": {"thought_signature": "c2lnbmVk"}}, "function": {'
ANSWERS: dict[str, list[dict[str, object]]] = {
    "openai": [{"choices": [{"delta": {"content": "Paid."}, "finish_reason": "stop"}]}],
    "openai-responses": [
        {"type": "response.output_text.delta", "delta": "Paid."},
        {"type": "response.completed", "response": {"status": "completed"}},
    ],
    "anthropic": [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Paid."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ],
}


class Case:
    """One turn: a reply that pays in disorder, and what is sent if it is refused.

    tries   how often the reply was asked for
    """

    def __init__(self, number: int, wire: str) -> None:
        chance = Random(number)
        self.number, self.wire, self.tries = number, wire, 0
        self.calls = [MadeCall(f"i{n}", "pay", {"case": number, "n": n}) for n in range(chance.randint(1, 3))]
        found = (STREAMS[wire](Random(seed), self.calls) for seed in range(1000 * number, 1000 * number + 999))
        streams = [one for one in (next(found) for _ in range(60)) if self._is_clear(one)]
        refused = [one for one in streams if read(wire, one.body) is None]
        taken = [one for one in streams if read(wire, one.body) is not None]
        self.is_refused = number % 3 == 0
        self.bodies = [refused[0].body, taken[0].body] if self.is_refused else [taken[0].body]

    def _is_clear(self, made: Disordered) -> bool:
        """Leaves out replies of which the gate refuses a call: their model is told, and this one pays no more."""
        reply = read(self.wire, made.body)
        return reply is None or not any(isinstance(call.arguments, str) for call in reply.calls)


class Model:
    """Answers for all cases, by the number in the request.

    signed   how many requests had the key of a call that brainq does not know
    """

    def __init__(self, cases: list[Case]) -> None:
        self._cases = {case.number: case for case in cases}
        self._lock = threading.Lock()
        self.signed = 0

    def __call__(self, exchange: Exchange) -> None:
        text = json.dumps(exchange.body)
        number = re.search(r"case (\d+)\.", text)
        assert number is not None
        case = self._cases[int(number[1])]
        exchange.begin()
        if "paid 0" in text:
            with self._lock:
                self.signed += "c2lnbmVk" in text
            for event in ANSWERS[case.wire]:
                exchange.event(event)
        else:
            with self._lock:
                case.tries += 1
                body = case.bodies[min(case.tries, len(case.bodies)) - 1]
            exchange.piece(body.replace(b'"function": {', SIGNED, 1))
        exchange.finish()


def test_each_payment_that_a_model_asked_for_is_made_once(tmp_path: Path) -> None:
    cases = [Case(100 * (at + 1) + n, wire) for at, wire in enumerate(WIRES) for n in range(CASES)]
    assert sum(case.is_refused for case in cases) >= 6
    with WireServer() as server:
        server.otherwise = model = Model(cases)
        keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "BRAINQ_APP": "tests.support.brains.paying:brains"}
        urls = {"OPENAI_BASE_URL": f"{server.url}/v1", "ANTHROPIC_BASE_URL": server.url}
        world = World(tmp_path, environment=keys | urls).start()
        try:
            handles = {
                case.number: world.client.submit(f"s{case.number}", f"Pay case {case.number}.", brain=case.wire)
                for case in cases
            }
            results = {number: handle.result(timeout_s=120) for number, handle in handles.items()}
        finally:
            world.stop()
    endings = {number: (result.ending, result.text, result.error) for number, result in results.items()}
    assert endings == dict.fromkeys(results, (Ending.COMPLETED, "Paid.", None))
    asked = Counter((case.number, call.arguments["n"]) for case in cases for call in case.calls)
    assert Counter((row["case"], row["n"]) for row in diary.notes("paid")) == asked
    for case in cases:
        lost = [spend for spend in results[case.number].spends if spend.kind == "lost"]
        assert (case.tries, bool(lost)) == (len(case.bodies), case.is_refused), f"case {case.number} is charged"
    assert model.signed == CASES, "each second request to the chat wire has it"
