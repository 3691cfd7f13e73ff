"""The brain of `people`, with two middlewares that record their calls, and wait at gates.

order("METHOD.gate.SESSION", gate)   `outer` waits there in this method of turns of the session
"""

from __future__ import annotations

from brainq import (
    Brain,
    CallStart,
    FinalStepInfo,
    Middleware,
    PostToolUse,
    ProviderError,
    ScriptedProvider,
    TurnEnd,
    TurnInfo,
)
from brainq.contracts.model import ModelReply, ModelRequest
from tests.support.brains import diary, people


class Noting(Middleware):
    def __init__(self, name: str) -> None:
        self._name = name

    def _note(self, method: str, session: str, turn: str, **facts: object) -> None:
        diary.note(method, by=self._name, session=session, turn=turn, **facts)
        if self._name == "outer":
            diary.pass_gate(diary.ordered(f"{method}.gate.{session}"))

    def before_turn(self, turn: TurnInfo) -> None:
        self._note("before_turn", turn.session_id, turn.turn_id)

    def after_turn(self, end: TurnEnd) -> None:
        self._note("after_turn", end.session_id, end.turn_id, key=end.step_key)

    def before_step(self, request: ModelRequest) -> None:
        self._note("before_step", request.session_id, request.turn_id, step=request.step, attempt=request.attempt)

    def after_step(self, request: ModelRequest, reply: ModelReply | None, failure: ProviderError | None) -> None:
        self._note("after_step", request.session_id, request.turn_id, step=request.step, attempt=request.attempt)

    def before_call(self, call: CallStart) -> None:
        self._note("before_call", call.session_id, call.turn_id, call=call.call.id, attempt=call.attempt)

    def after_call(self, call: PostToolUse) -> None:
        self._note("after_call", call.session_id, call.turn_id, key=call.call_key, kind=call.outcome.kind)

    def after_final_step(self, step: FinalStepInfo, failure: Exception | None) -> None:
        self._note("after_final_step", step.session_id, step.turn_id, step=step.name)


brain = Brain(
    "middled",
    ScriptedProvider(rules=people.obey),
    tools=people.brain.tools.values(),
    middleware=[Noting("outer"), Noting("inner")],
)
