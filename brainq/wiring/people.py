"""The machines behind the verbs of people and other programs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from brainq.admission import Admission
from brainq.brain import Brain
from brainq.contracts.turn import TurnRequest
from brainq.people.approval_healer import ApprovalHealer
from brainq.people.approvals import ApprovalDesk
from brainq.people.brakes import BrakeDesk
from brainq.people.children import ChildDesk
from brainq.people.inputs import InputDesk
from brainq.people.intake import Intake
from brainq.people.outside import OutsideDesk
from brainq.people.posthook import PostHook
from brainq.providers.resolve import check_choice
from brainq.store.store import Store
from brainq.turn.client_tools import check_client_tools
from brainq.turn.planning.edit import edited_call
from brainq.wiring.state import State


@dataclass(frozen=True)
class People:
    """Submits, input, holds and cancels, approvals, results from outside, child turns."""

    admission: Admission
    brakes: BrakeDesk
    inputs: InputDesk
    intake: Intake
    children: ChildDesk
    approvals: ApprovalDesk
    approval_healer: ApprovalHealer
    outside: OutsideDesk


def make_people(brain: Brain, state: State, store: Store) -> People:
    brakes = BrakeDesk(store.brakes, state.holds, state.turns)
    admission = Admission(
        store.turns,
        state.turns,
        brain.limits,
        children=brain.children.max_turns,
        wrote=store.calls.has_intents,
        brakes=brakes,
        inputs=store.inputs,
    )
    inputs = InputDesk(
        inputs=store.inputs,
        mailbox=state.mailbox,
        sessions=state.sessions,
        requests=store.turns,
        admission=admission,
        holds=state.holds,
        brakes=brakes,
        redact=brain.redact_logs,
    )
    hook = PostHook(brain, state.calls).ready
    return People(
        admission=admission,
        brakes=brakes,
        inputs=inputs,
        intake=Intake(
            check=partial(_check, brain),
            admission=admission,
            keys=store.turns,
            desk=inputs,
            sessions=state.sessions,
        ),
        children=ChildDesk(
            limits=brain.children,
            requests=store.turns,
            admission=admission,
            budgets=state.budgets,
            calls=state.calls,
            outside=state.outside,
            intents=store.calls,
            cancel=state.turns.cancel,
            hook=hook,
        ),
        approvals=ApprovalDesk(
            rows=store.approvals,
            asks=state.approvals,
            requests=store.turns,
            editor=partial(edited_call, brain),
            redact=brain.redact_logs,
        ),
        approval_healer=ApprovalHealer(store.approvals, state.approvals),
        outside=OutsideDesk(
            outside=state.outside,
            calls=state.calls,
            asks=state.approvals,
            intents=store.calls,
            hook=hook,
        ),
    )


def _check(brain: Brain, request: TurnRequest) -> None:
    """Raises InvalidInput for a request that the brain cannot do."""
    check_choice(brain.model, request.model, request.provider)
    check_client_tools(brain, request)
