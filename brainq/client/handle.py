"""TurnHandle, with which you follow and steer one turn, and Hold, which keeps calls with effects from starting."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from brainq.adapters.redis.fleet import RedisWorkers
from brainq.client import checks, waiting
from brainq.client.connection import Connection, InSession, connection_of
from brainq.client.following import iterate_text
from brainq.client.history import child_turns, make_history
from brainq.client.lists import get_file, get_request, get_turn
from brainq.client.options import Cancelled, WaitFor
from brainq.client.timeline import read_timeline
from brainq.contracts.act import NewAct
from brainq.contracts.claim import CallRef
from brainq.contracts.evaluation import RuntimeDecisionRecord
from brainq.contracts.event import TurnTimeline
from brainq.contracts.file import File, check_files
from brainq.contracts.history import StartedTurn, TurnCall
from brainq.contracts.ids import check_id
from brainq.contracts.message import Message
from brainq.contracts.people import DEFAULT_HOLD_S, Approval, HoldPolicy, Receipt, StandingHold
from brainq.contracts.rows import TurnRow
from brainq.contracts.turn import TurnRequest, TurnResult
from brainq.contracts.view import TurnSnapshot
from brainq.engine.people.outside import Taken
from brainq.engine.tools.results import OutcomeUnknown, ToolError
from brainq.engine.turn.explain import explain
from brainq.runtime.settings.deployment import Settings

if TYPE_CHECKING:
    from brainq.client.client import Client
    from brainq.contracts.typed_events import Event

ENDED_OR_PARKED: frozenset[WaitFor] = frozenset(("ended", "parked"))


def explain_next(row: TurnRow, snapshot: TurnSnapshot | None, settings: Settings, workers: RedisWorkers | None) -> str:
    """Return one sentence, without a full stop, that explains what happens next to a turn and why.

    snapshot: None if Redis does not know the turn. The sentence then comes from SQL's row.
    """
    if snapshot is not None:
        alive = None if workers is None else {worker.pool for worker in workers.alive()}
        return explain(snapshot, sweep_s=settings.sweep_s, rering_s=settings.rering_s, alive=alive)
    if row.state == "rejected":
        return "rejected when it was submitted; it never ran"
    if row.ended_at is not None:
        return f"ended as {row.state}; nothing more happens: it has expired in Redis, and SQL keeps its record"
    return "accepted in SQL but not yet in Redis; if a coordinator runs, its sweeper adds it within seconds"


class Hold(InSession):
    """A hold on a turn. While it is open, no call with an effect starts in the turn; reads continue.

        with handle.hold("looking at the plan"):
            look_at(handle)

    A hold survives this process and a loss of Redis' data. Any process that has its id can release it with
    `handle.release(hold.id)`.
    """

    def __init__(self, client: Client, session_id: str, turn_id: str, hold_id: str) -> None:
        self._connection = connection_of(client)
        self.session_id = session_id
        self.turn_id = turn_id
        self.id = hold_id

    def __repr__(self) -> str:
        return f"Hold(turn_id={self.turn_id!r}, id={self.id!r})"

    def release(self) -> bool:
        """Release the hold. The turn continues unless another hold is open. Returns False if the hold was no longer
        open."""
        return release_hold(self._connection, self.session_id, self.turn_id, self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class TurnHandle(InSession):
    """A turn that can be followed and steered. `client.submit(...)` and `client.handle(turn_id)` return one."""

    def __init__(
        self, client: Client, session_id: str, turn_id: str, *, created: bool = False, joined: Receipt | None = None
    ) -> None:
        self._client = client
        self._connection = connection_of(client)
        self.session_id = session_id
        self.turn_id = turn_id
        self.created = created
        """False if this request_key had been submitted before. The handle is then the first turn's."""
        self.joined = joined
        """The receipt of the message if `on_busy` put it into another turn. The handle is then that turn's."""

    def __repr__(self) -> str:
        return f"TurnHandle(session_id={self.session_id!r}, turn_id={self.turn_id!r})"

    def result(self, timeout_s: float | None = None) -> TurnResult:
        """Wait for the turn's result, whatever its ending is.

        Raises ResultTimeout after `timeout_s` seconds (None waits without limit), TurnRejected if the turn was refused,
        and TurnNotFound if neither Redis nor SQL knows it.
        """
        limits = waiting.WaitLimits(self.turn_id, timeout_s, None, time.monotonic())
        after = 0
        while True:
            with waiting.waiting_for_move(limits):
                result = self._known_result()
                if result is not None:
                    return result
                limits.check(time.monotonic())
                batch = self._next_batch(after, limits)
                after = batch[-1].seq if batch else after

    def wait(
        self, until: WaitFor | Collection[WaitFor] = ENDED_OR_PARKED, timeout_s: float | None = None
    ) -> Literal["ended", "parked"]:
        """Wait until the turn has ended, or is parked: everything open in it waits for a person or an outside result.

        until: `ended`, `parked`, or what it is parked for: `people` (an approval), `client` (your own tools),
            `outside`. For a turn that has ended the answer is `ended`, whatever was waited for.
        timeout_s: seconds in all.

        Raises ResultTimeout, and otherwise as `result`.
        """
        waits = waiting.check_until(until)
        limits = waiting.WaitLimits(self.turn_id, timeout_s, None, time.monotonic())
        after, quiet = 0, False
        while True:
            with waiting.waiting_for_move(limits):
                if not quiet and self._known_result() is not None:
                    return "ended"
                if not quiet and waits and waiting.is_parked(self.snapshot(), waits):
                    return "parked"
                limits.check(time.monotonic())
                batch = self._next_batch(after, limits)
                quiet = waiting.is_only_progress(batch)
                after = batch[-1].seq if batch else after

    def events(self, after: int = 0, timeout_s: float | None = None, *, idle_s: float | None = None) -> Iterator[Event]:
        """Iterate over the events numbered above `after`, as they come, up to the final one.

        timeout_s: seconds in all, as for `result`.
        idle_s: seconds without any event. A turn that makes progress is followed however long it takes.

        Ends without the final event if its number is not above `after`, or if the turn's events have expired in Redis.
        Raises ResultTimeout if either time is over, TurnNotFound if neither Redis nor SQL knows the turn.
        """
        limits = waiting.WaitLimits(self.turn_id, timeout_s, idle_s, time.monotonic())
        while True:
            batch: list[Event] = []
            over = False
            with waiting.waiting_for_move(limits):
                batch, over = self._next_events(after, limits)
            yield from batch
            if over:
                return
            if batch:
                after = batch[-1].seq
                limits.event_arrived(time.monotonic())
            else:
                limits.check(time.monotonic())

    def text(self, timeout_s: float | None = None, *, idle_s: float | None = None) -> Iterator[str]:
        """Iterate over the newest step's text as it grows. Each item replaces the one before, so a step that
        is attempted again is never doubled. The last item is the result's `text`. Raises as `events` and `result`."""
        return iterate_text(self.events(0, timeout_s, idle_s=idle_s), self.result)

    def events_so_far(self) -> tuple[Event, ...]:
        """Return the events so far, without waiting for more. Returns none before the turn is in Redis, and none once
        they have expired there."""
        return self._read(lambda wiring: waiting.events_so_far(wiring, self.session_id, self.turn_id))

    def request(self) -> TurnRequest:
        """Return the submitted request, as SQL has it. Raises TurnNotFound."""
        return self._read(lambda wiring: get_request(wiring.store, self.turn_id))

    def snapshot(self) -> TurnSnapshot | None:
        """Return the turn's current state in Redis. Returns None once it has expired there."""
        return self._read(lambda wiring: wiring.state.snapshots.read(self.session_id, self.turn_id))

    def explain(self) -> str:
        """Return one sentence that explains what happens next and why: what the turn waits for, which worker has it,
        how soon lost work is found, or which worker is missing.

        Raises TurnNotFound.
        """
        row = self._row()
        snapshot = None if row.state == "rejected" else self.snapshot()
        return self._read(lambda wiring: explain_next(row, snapshot, wiring.settings, wiring.state.workers))

    def timeline(self) -> TurnTimeline:
        """Return the turn as bars over time: steps, calls, waits, parks, holds, input, reflections, finalizer steps.

        It is made of the turn's events while Redis has them. Events above its `seq` continue it, by the rules in
        docs/guides/events.md. Later it is made of SQL's rows, which lack the begin of steps, the waits for lanes and
        holds, and reflections. Raises TurnNotFound.
        """
        row, events = self._row(), self.events_so_far()
        return self._read(lambda wiring: read_timeline(wiring.store, wiring.state, row, events))

    def children(self) -> tuple[StartedTurn, ...]:
        """Return the turns that calls of this turn started, in the order of the calls."""
        return self._read(lambda wiring: child_turns(wiring, self.session_id, self.turn_id))

    def transcript(self, limit: int = checks.MAX_LISTED, after: int = 0) -> tuple[Message, ...]:
        """Return the turn's messages in order: the user's, then for each step the model's with the `calls` it made,
        their `arguments`, and a `tool` message with the result of each call. Input sent into the turn comes before the
        reply that read it; the runtime's notes come after a reply.

        limit: messages a page, up to 10,000.
        after: how many messages to skip, which is how many were read before.

        Messages come from Redis while the turn lives and from SQL later, in the same order. There are none if the turn
        has not begun, or ended before it began. A call's id here is unique in its turn; `calls()` has ids that are
        unique everywhere. Raises ContentNotKept if the turn has ended and its brain keeps content out of SQL, or if a
        compaction removed messages from Redis before; InvalidInput; TurnNotFound.
        """
        most, left_out = checks.limit(limit), checks.after_count(after)
        return self._read(lambda wiring: make_history(wiring).transcript(self.session_id, self.turn_id, most, left_out))

    def file(self, sha256: str) -> File:
        """Return an attachment of one of the turn's messages, by the hash in `Message.attachments`.

        Raises AttachmentNotFound if the turn has no such file, or if it was pruned or kept out of SQL by `redact_logs`.
        """
        return self._read(lambda wiring: get_file(wiring.store, self.turn_id, sha256))

    def decision(self) -> RuntimeDecisionRecord | None:
        """Return how the turn reached its answer: strategy, tools, hashes of context and prompt, tokens, times. Returns
        None until shortly after the result is out, and for a turn that was refused.

        It is read from the brain's own store (`Brain(decisions=...)`) if it has one and this process has the brain,
        else from SQL. Raises TurnNotFound.
        """
        self._row()
        return self._read(lambda wiring: wiring.decisions.get(self.turn_id))

    def calls(self, limit: int = checks.MAX_LISTED, after: str | None = None) -> tuple[TurnCall, ...]:
        """Return every call of the turn in the model's order, with its arguments, result and status.

        limit: calls a page, up to 10,000.
        after: the `id` of the last call of the previous page.

        Calls come from Redis while the turn is live, and later from SQL as they were when the turn ended. If the brain
        keeps content out of SQL, calls of an ended turn have no arguments, no results, and `is_kept=False`. Raises
        InvalidInput, TurnNotFound.
        """
        most, behind = checks.limit(limit), checks.after_call(self.turn_id, after)
        return self._read(lambda wiring: make_history(wiring).calls(self.session_id, self.turn_id, most, behind))

    def give_result(self, call_id: str, result: object, *, partial: bool = False) -> Taken:
        """Send the result of a call of one of your `client_tools`. Only the first result counts. The result is JSON of
        at most 256,000 characters, a File, or `WithFiles(JSON, [File, ...])`.

        call_id: the id in `calls()` or in the event `call.parked`. The full id is accepted, too.
        partial: True if the result is incomplete. The model is told.

        Returns `settled`, or `late` if the call no longer waits: the model then reads the result at its next step or
        turn. Raises ResultRefused if the call already has a result or waits for none; CallNotFound; InvalidInput.
        """
        call = self._call(call_id)
        return self._do(
            lambda wiring: wiring.people.outside.give_result(call, result, partial=partial),
            self._act("result", call_id),
        )

    def give_error(self, call_id: str, error: str | ToolError | OutcomeUnknown) -> Taken:
        """Send an error in place of a result. See `give_result`.

        error: one line for the model; ToolError for a longer text; OutcomeUnknown if the change may or may not have
            been made.
        """
        call = self._call(call_id)
        return self._do(lambda wiring: wiring.people.outside.give_error(call, error), self._act("result", call_id))

    def _call(self, call_id: str) -> CallRef:
        return CallRef(self.session_id, self.turn_id, checks.call_id(self.turn_id, call_id))

    def cancel(self, reason: str = "") -> Cancelled:
        """Request that the turn be cancelled. The request survives this process and every worker.

        A turn whose last answer has already come may still complete. Returns `cancelled` if the turn had not begun,
        `requested`, or `ended` if there was nothing to cancel.
        """
        return self._client.cancel(self.session_id, self.turn_id, reason)

    def delete_response(self) -> bool:
        """Delete the turn's response for HTTP APIs that let callers delete one.

        The turn, its result and its session's history remain. Returns False if the response was deleted before.
        """
        return self._do(
            lambda wiring: wiring.store.brakes.delete_response(self.session_id, self.turn_id),
            self._act("delete response"),
        )

    def is_response_deleted(self) -> bool:
        """Return whether any process called `delete_response` for the turn."""
        return self._read(lambda wiring: wiring.store.brakes.is_response_deleted(self.turn_id))

    def steer(
        self,
        text: str,
        *,
        client_message_id: str | None = None,
        readiness: bool | None = None,
        expected_turn_id: str | None = None,
        attachments: Sequence[File | Mapping[str, Any]] = (),
    ) -> Receipt:
        """Send follow-up input into the turn. The model reads it at its next step; its task stays the same.

        client_message_id: your id for the input; sending it again with the same id, in this session, is harmless.
        readiness: True lifts the turn's readiness hold, False sets one, None leaves it. With it the text may be empty.
        expected_turn_id: send it only if this is the session's live turn.
        attachments: images and files, as for `Client.submit`. With them the text may be empty.

        The receipt's state is `accepted`. Later `receipt(...)` returns `consumed` with the step that read it, or
        `bounced` if the turn ended first and the input became the turn that the receipt names. Raises InvalidInput,
        StaleTurn, MailboxFull; SubmitConflict if the id was used for other input; Unreachable, whose
        `client_message_id` makes a second try the same input.
        """
        files = check_files("attachments", attachments, self._connection.settings.file_limits)
        item = checks.turn_input(text, client_message_id, readiness, files)
        expected = checks.expected_turn(expected_turn_id)
        return self._connection.do(
            lambda wiring: wiring.people.inputs.send(
                self.session_id, self.turn_id, item, files, expected_turn_id=expected
            ),
            "the input has a row",
            session=self.session_id,
            client_message_id=item.client_message_id,
        )

    def receipt(self, client_message_id: str) -> Receipt:
        """Return the receipt of an input of this session. Raises InputNotFound if it was never sent."""
        message_id = check_id("client_message_id", client_message_id)
        return self._read(lambda wiring: wiring.people.inputs.receipt(self.session_id, message_id))

    def hold(self, reason: str = "", *, expires_in_s: float = DEFAULT_HOLD_S, on_expiry: HoldPolicy = "deny") -> Hold:
        """Keep calls with effects from starting until the hold is released; reads continue.

        reason: for people; events show it.
        expires_in_s: the longest time, in seconds, that the hold stays open.
        on_expiry: what happens then: `deny` the waiting calls, `release` them, or `cancel` the turn.

        The turn's time does not run while it waits. Raises InvalidInput, also if the turn has ended.
        """
        spec = checks.hold("hold", reason, expires_in_s, on_expiry)
        hold_id = self._do(
            lambda wiring: waiting.hold_turn(wiring, self.session_id, self.turn_id, spec),
            self._act("hold", reason=spec.reason),
        )
        return Hold(self._client, self.session_id, self.turn_id, hold_id)

    def holds(self) -> tuple[StandingHold, ...]:
        """Return the open holds of the turn, including its readiness flag."""
        return self._read(lambda wiring: wiring.state.holds.of_turn(self.session_id, self.turn_id))

    def release(self, hold_id: str) -> bool:
        """Release a hold that was placed elsewhere. Returns False if it was not open."""
        return release_hold(self._connection, self.session_id, self.turn_id, check_id("hold_id", hold_id))

    def approvals(self) -> tuple[Approval, ...]:
        """Return the turn's approval requests, decided ones included, in the order in which they were made."""
        return self._read(lambda wiring: wiring.people.approvals.of_turn(self.turn_id))

    def _act(self, act: str, subject: str = "", reason: str = "") -> NewAct:
        return NewAct(act, subject, reason=reason, session_id=self.session_id, turn_id=self.turn_id)

    def _next_batch(self, after: int, limits: waiting.WaitLimits) -> list[Event]:
        wait_s = min(waiting.POLL_S, limits.remaining_s(time.monotonic()))
        return self._read(lambda wiring: wiring.state.events.read(self.session_id, self.turn_id, after, wait_s))

    def _next_events(self, after: int, limits: waiting.WaitLimits) -> tuple[list[Event], bool]:
        wait_s = min(waiting.POLL_S, limits.remaining_s(time.monotonic()))
        return self._read(lambda wiring: waiting.next_events(wiring, self.session_id, self.turn_id, after, wait_s))

    def _row(self) -> TurnRow:
        return self._read(lambda wiring: get_turn(wiring.store, self.turn_id))

    def _known_result(self) -> TurnResult | None:
        return self._read(lambda wiring: waiting.known_result(wiring, self.session_id, self.turn_id))


def release_hold(connection: Connection, session_id: str, turn_id: str, hold_id: str) -> bool:
    return connection.do(
        lambda wiring: wiring.people.brakes.release(session_id, turn_id, hold_id),
        NewAct("release", hold_id, session_id=session_id, turn_id=turn_id),
        session=session_id,
    )
