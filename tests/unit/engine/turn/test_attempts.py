"""What an attempt at a step asks for."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, cast

from brainq.contracts.budgets import AtCap, Budget, BudgetWindow
from brainq.contracts.callbacks import TurnInfo
from brainq.contracts.claim import StepAttempt, StepStart, TurnClaim
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.turn import Limits
from brainq.engine.brain.brain import Brain
from brainq.engine.turn.begin import StepSetting
from brainq.engine.turn.owned_turn import LOST, Lost, OwnedTurn
from brainq.engine.turn.step import StepRunner
from brainq.engine.turn.step_money import StepMoney, Try, next_try
from brainq.engine.turn.step_request import BlobCache, StepRequest
from brainq.runtime.outage import OutageRetry, never_unavailable
from brainq.testing import ScriptedProvider, says
from tests.support.blobs import BlobsInMemory
from tests.unit.engine.turn.views import REQUEST, view


class Turns:
    def begin_step(self, *_: object) -> StepAttempt:
        return StepAttempt(1, 1)

    def mark(self, claim: TurnClaim) -> str:
        return "mark"

    def publish_delta(self, *_: object) -> bool:
        return True


class Replies:
    def handle(self, *_: object) -> Lost:
        return LOST


class NoBudgets:
    def windows(self, *_: object) -> tuple[()]:
        return ()


def test_time_that_was_waited_for_redis_or_sql_is_not_given_to_the_model() -> None:
    seen: list[ModelRequest] = []

    def rules(request: ModelRequest) -> ModelReply:
        seen.append(request)
        return says("Well.")

    provider = ScriptedProvider(rules=rules)
    brain = Brain("b", provider)
    attempts = StepRunner(
        brain=brain,
        turns=cast(Any, Turns()),
        replies=cast(Any, Replies()),
        price=lambda provider, model, usage: None,
        blobs=BlobCache(BlobsInMemory()),
        money=StepMoney(brain=brain, turns=cast(Any, Turns()), budgets=cast(Any, NoBudgets())),
    )
    setting = StepSetting(provider, "m", "", TurnInfo.from_request(REQUEST, 1), Limits())
    asking = StepRequest(setting, (), (), StepStart(estimate=0, most_tokens=0, max_usd=None))
    claim = TurnClaim("s1", "t-1", "me", 1, 0)
    trying = OutageRetry({}, never_unavailable, time.monotonic() + 5)
    assert view().remaining_ms == 60_000
    attempts.run(OwnedTurn(claim, view(), lambda: False, trying), asking)
    assert seen[0].timeout_s <= 5


def test_a_refused_attempt_is_tried_again_until_its_budget_is_at_the_cap() -> None:
    begin = StepStart(estimate=0, most_tokens=0, max_usd=None)
    window = BudgetWindow("all", Budget(scope="all", per="day", usd=1.0), (0, 1, 2, 3))
    caps: dict[str, AtCap] = {
        "wait": AtCap("wait", window, 1),
        "park": AtCap("park", window, 1),
        "refuse": AtCap("refuse", window, 1),
        "finish": AtCap("finish", window, 1),
    }
    charged = replace(begin, lost=())
    assert next_try(Try(begin), None) == Try(charged), "SQL has granted more"
    assert next_try(Try(begin, is_last=True), None) == Try(charged, is_last=True)
    assert next_try(Try(begin), caps["finish"]) == Try(charged, is_last=True), "a last answer needs less"
    assert next_try(Try(begin, is_last=True), caps["finish"]) == caps["finish"]
    for what in ("wait", "park", "refuse"):
        assert next_try(Try(begin), caps[what]) == caps[what]
