"""The machines behind the verbs of people and other programs."""

from __future__ import annotations

from functools import cached_property, partial

from brainq.admission import Admission
from brainq.people.approvals import ApprovalDesk
from brainq.people.brakes import BrakeDesk
from brainq.people.children import ChildDesk
from brainq.people.inputs import InputDesk
from brainq.people.intake import Intake
from brainq.people.outside import OutsideDesk
from brainq.people.posthook import PostHook
from brainq.providers.resolve import check_choice
from brainq.turn.planning.edit import edited_call
from brainq.wiring.services import Services


class People(Services):
    """Submits, input, approvals, results from outside, child turns."""

    @cached_property
    def admission(self) -> Admission:
        return Admission(
            self.store.turns,
            self.turns,
            self.brain.limits,
            children=self.brain.children.max_turns,
            wrote=self.store.calls.has_intents,
            brakes=self.brakes,
            inputs=self.store.inputs,
        )

    @cached_property
    def brakes(self) -> BrakeDesk:
        return BrakeDesk(
            self.store.brakes,
            self.holds,
            self.turns,
        )

    @cached_property
    def inputs(self) -> InputDesk:
        return InputDesk(
            inputs=self.store.inputs,
            mailbox=self.mailbox,
            sessions=self.sessions,
            requests=self.store.turns,
            admission=self.admission,
            holds=self.holds,
            brakes=self.brakes,
            redact=self.brain.redact_logs,
        )

    @cached_property
    def intake(self) -> Intake:
        return Intake(
            check=lambda request: check_choice(self.brain.model, request.model, request.provider),
            admission=self.admission,
            keys=self.store.turns,
            desk=self.inputs,
            sessions=self.sessions,
        )

    @cached_property
    def children(self) -> ChildDesk:
        return ChildDesk(
            limits=self.brain.children,
            requests=self.store.turns,
            admission=self.admission,
            budgets=self.budgets,
            calls=self.calls,
            outside=self.outside,
            intents=self.store.calls,
            cancel=self.turns.cancel,
            hook=self.post_hook.ready,
        )

    @cached_property
    def approval_desk(self) -> ApprovalDesk:
        return ApprovalDesk(
            rows=self.store.approvals,
            asks=self.approvals_state,
            requests=self.store.turns,
            edit=partial(edited_call, self.brain),
            redact=self.brain.redact_logs,
        )

    @cached_property
    def post_hook(self) -> PostHook:
        return PostHook(self.brain, self.calls)

    @cached_property
    def outside_desk(self) -> OutsideDesk:
        return OutsideDesk(
            outside=self.outside,
            calls=self.calls,
            asks=self.approvals_state,
            intents=self.store.calls,
            hook=self.post_hook.ready,
        )
