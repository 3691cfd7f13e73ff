"""The machines behind the actions of people and of other programs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from brainq.contracts.turn import TurnRequest
from brainq.engine.brain.brains import Brains, require_brain, with_brain_name
from brainq.engine.models.providers import check_model_choice
from brainq.engine.people.admission import Admission
from brainq.engine.people.approvals import ApprovalDesk, ApprovalHealer
from brainq.engine.people.bounced_inputs import BouncedInputs
from brainq.engine.people.brakes import BrakeDesk
from brainq.engine.people.children import ChildDesk
from brainq.engine.people.inputs import InputDesk
from brainq.engine.people.intake import Intake, QueueLimits
from brainq.engine.people.outside import OutsideDesk
from brainq.engine.people.stops import StopDesk
from brainq.engine.people.turn_queue import TurnQueue
from brainq.engine.turn.begin import check_tool_choice
from brainq.engine.turn.client_tools import check_client_tools, turn_specs

if TYPE_CHECKING:
    from brainq.app.wiring.wiring import Wiring


class PeopleServices:
    """The machines for submits, input, holds, cancels, approvals, results from outside, and child turns."""

    def __init__(self, wiring: Wiring) -> None:
        brains, turn_brains, state, store = wiring.brains, wiring.turn_brains, wiring.state, wiring.store
        settings, check_request = wiring.settings, partial(_checked_request, brains)
        self.brakes = BrakeDesk(store.brakes, state.holds, state.turns, wiring.tenants)
        self.stops = StopDesk(store.stops, state.stop_switch)
        self.turn_queue = TurnQueue(
            store.turns,
            state.turns,
            brains.each(lambda brain: brain.limits),
            children=brains.each(lambda brain: brain.children.max_turns),
            calls=store.calls,
            brakes=self.brakes,
            inputs=store.inputs,
            tenants=wiring.tenants,
            state=state.sweeper,
        )
        self.admission = Admission(store.turns, self.turn_queue)
        self.bounced_inputs = BouncedInputs(
            inputs=store.inputs,
            requests=store.turns,
            admission=self.admission,
            redact=turn_brains.redacts,
            blobs=store.blobs,
        )
        self.inputs = InputDesk(
            inputs=store.inputs,
            sessions=state.sessions,
            requests=store.turns,
            bounced=self.bounced_inputs,
            turn_queue=self.turn_queue,
            holds=state.holds,
            brakes=self.brakes,
            redact=turn_brains.redacts,
            blobs=store.blobs,
            tenants=wiring.tenants,
        )
        self.intake = Intake(
            check_request=check_request,
            admission=self.admission,
            keys=store.turns,
            desk=self.inputs,
            sessions=state.sessions,
            blobs=store.blobs,
            limits=QueueLimits(
                sessions=state.sessions,
                a_session=settings.max_waiting_turns_a_session,
                a_tenant=settings.max_waiting_turns_a_tenant,
                budgets=wiring.budgets,
            ),
            tenants=wiring.tenants,
        )
        self.children = ChildDesk(
            limits=brains.each(lambda brain: brain.children),
            check_request=check_request,
            requests=store.turns,
            admission=self.admission,
            turns=state.turns,
            calls=state.calls,
            outside=state.outside,
            intents=store.calls,
            tenants=wiring.tenants,
        )
        self.approvals = ApprovalDesk(
            rows=store.approvals,
            holds=state.holds,
            requests=store.turns,
            brains=brains,
            redact=turn_brains.redacts,
            tenants=wiring.tenants,
        )
        self.approval_healer = ApprovalHealer(store.approvals, state.holds)
        self.outside = OutsideDesk(
            outside=state.outside,
            calls=state.calls,
            holds=state.holds,
            intents=store.calls,
            blobs=store.blobs,
            limits=settings.file_limits,
            tenants=wiring.tenants,
        )


def _checked_request(brains: Brains, request: TurnRequest) -> TurnRequest:
    """Return the request with its brain's name. Raises InvalidInput for an unknown brain, and for what its brain cannot
    do."""
    named = with_brain_name(brains, request)
    brain = require_brain(brains, named.brain)
    if named.model is not None or named.provider is not None:
        check_model_choice(brain.model, named.model, named.provider)
    if named.client_tools:
        check_client_tools(brain, named)
    if named.options.tool_choice is not None:
        check_tool_choice(named.options, turn_specs(brain, named))
    return named
