"""TurnHandle: one submitted turn, from any process; and Hold, which keeps its writes from starting."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from brainq.client import checks, waiting
from brainq.client.connection import Connection, InSession, connection_of
from brainq.client.history import child_turns, make_history
from brainq.client.lists import get_file, get_request, get_turn
from brainq.client.options import Cancelled, WaitFor
from brainq.client.timeline import read_timeline
from brainq.contracts.act import NewAct
from brainq.contracts.claim import CallRef
from brainq.contracts.evaluation import RuntimeDecisionRecord
from brainq.contracts.event import TurnEvent, TurnTimeline
from brainq.contracts.file import File, check_files
from brainq.contracts.history import StartedTurn, TurnCall
from brainq.contracts.ids import check_id
from brainq.contracts.message import Message
from brainq.contracts.people import DEFAULT_HOLD_S, Approval, HoldPolicy, Receipt, StandingHold
from brainq.contracts.rows import TurnRow
from brainq.contracts.turn import TurnRequest, TurnResult
from brainq.contracts.view import TurnSnapshot
from brainq.people.outside import Taken
from brainq.settings.deployment import Settings
from brainq.state.fleet import RedisWorkers
from brainq.tools.results import OutcomeUnknown, ToolError
from brainq.turn.explain import explain

if TYPE_CHECKING:
    from brainq.client.client import Client

ENDED_OR_PARKED: frozenset[WaitFor] = frozenset(("ended", "parked"))


def explain_next(row: TurnRow, snapshot: TurnSnapshot | None, settings: Settings, workers: RedisWorkers | None) -> str:
    """What happens next to a turn, and why, in one sentence without a full stop.

    snapshot   None: Redis does not know the turn, and SQL says what happens
    """
    if snapshot is not None:
        alive = None if workers is None else {worker.pool for worker in workers.alive()}
        return explain(snapshot, sweep_s=settings.sweep_s, rering_s=settings.rering_s, alive=alive)
    if row.state == "rejected":
        return "rejected when it was submitted; it never ran"
    if row.ended_at is not None:
        return f"ended as {row.state}; nothing more happens, Redis has let it go and SQL keeps its record"
    return "accepted in SQL and not in Redis: a sweeper puts it there within seconds, if a coordinator runs"


class Hold(InSession):
    """A hold on a turn. While one is open, no call that changes something starts in it; reads go on.

        with handle.hold("looking at the plan"):
            look_at(handle)

    It outlives this process, and Redis' data: any caller that has its id can release it, from any process
    (`handle.release(hold.id)`).
    """

    def __init__(self, client: Client, session_id: str, turn_id: str, hold_id: str) -> None:
        self._connection = connection_of(client)
        self.session_id = session_id
        self.turn_id = turn_id
        self.id = hold_id

    def __repr__(self) -> str:
        return f"Hold(turn_id={self.turn_id!r}, id={self.id!r})"

    def release(self) -> bool:
        """Let the turn go on, unless another hold is open. False when this one no longer was."""
        return release_hold(self._connection, self.session_id, self.turn_id, self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class TurnHandle(InSession):
    """Follows one turn, and talks to it. Make it with `client.submit(...)` or `client.handle(turn_id)`."""

    def __init__(
        self, client: Client, session_id: str, turn_id: str, *, created: bool = False, joined: Receipt | None = None
    ) -> None:
        self._client = client
        self._connection = connection_of(client)
        self.session_id = session_id
        self.turn_id = turn_id
        self.created = created
        """False when this request_key had been submitted before: the handle is the first turn's."""
        self.joined = joined
        """The receipt of the message where `on_busy` put it into another turn, whose handle this then is."""

    def __repr__(self) -> str:
        return f"TurnHandle(session_id={self.session_id!r}, turn_id={self.turn_id!r})"

    def result(self, timeout_s: float | None = None) -> TurnResult:
        """Wait for the turn's result, for every ending.

        Raises ResultTimeout after `timeout_s` seconds (None: no limit), TurnRejected for a refused turn, and
        TurnNotFound when neither Redis nor SQL knows it.
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

        until       `ended`, `parked`, or for whom it is parked: `people` (an approval), `client` (tools of yours),
                    `outside`. For a turn that has ended it is `ended`, whatever is waited for
        timeout_s   seconds in all

        Raises ResultTimeout, and else as `result`.
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

    def events(
        self, after: int = 0, timeout_s: float | None = None, *, idle_s: float | None = None
    ) -> Iterator[TurnEvent]:
        """Events numbered above `after`, as they come, to the final one.

        timeout_s   seconds in all, as of `result`
        idle_s      seconds without any event: a turn that goes on is followed however long it takes

        Ends without the final event when that is not above `after`, or the turn's events have expired from Redis.
        Raises ResultTimeout when either is over, TurnNotFound when neither Redis nor SQL knows the turn.
        """
        limits = waiting.WaitLimits(self.turn_id, timeout_s, idle_s, time.monotonic())
        while True:
            batch, over = list[TurnEvent](), False
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

    def events_so_far(self) -> tuple[TurnEvent, ...]:
        """The events there are now, without waiting for more. None before the turn is in Redis, and once they have
        expired there."""
        return self._read(lambda wiring: waiting.events_so_far(wiring, self.session_id, self.turn_id))

    def request(self) -> TurnRequest:
        """What was submitted, as SQL keeps it. Raises TurnNotFound."""
        return self._read(lambda wiring: get_request(wiring.store, self.turn_id))

    def snapshot(self) -> TurnSnapshot | None:
        """The turn as Redis knows it now; None once it has expired there."""
        return self._read(lambda wiring: wiring.state.snapshots.read(self.session_id, self.turn_id))

    def explain(self) -> str:
        """What happens next, and why, in one sentence: what it waits for, who has it, how soon what was lost is
        found, which worker is missing.

        Raises TurnNotFound.
        """
        row = self._row()
        snapshot = None if row.state == "rejected" else self.snapshot()
        return self._read(lambda wiring: explain_next(row, snapshot, wiring.settings, wiring.state.workers))

    def timeline(self) -> TurnTimeline:
        """The turn as bars over time: steps, calls, waits, parks, holds, input, reflections, finalizer steps.

        From its events while Redis has them; events above its `seq` continue it, by the rules in docs/guides/events.md.
        Later from SQL, which does not know when steps began, what waited for lanes and holds, nor reflections. Raises
        TurnNotFound.
        """
        row, events = self._row(), self.events_so_far()
        return self._read(lambda wiring: read_timeline(wiring.store, wiring.state, row, events))

    def children(self) -> tuple[StartedTurn, ...]:
        """The turns that calls of this one started, in the order of these calls. Empty for nearly every turn."""
        return self._read(lambda wiring: child_turns(wiring, self.session_id, self.turn_id))

    def transcript(self, limit: int = checks.MAX_LISTED, after: int = 0) -> tuple[Message, ...]:
        """The turn's messages in order: the user's, then step by step the model's with the `calls` it made, their
        `arguments`, and a `tool` message for each with its result; what was sent into the turn comes before the reply
        that read it, and the runtime's own notes behind one.

        limit    messages a page, up to 10,000
        after    how many messages to leave out: as many as were read before

        Live from Redis, later from SQL, the same messages in the same places. Empty for a turn that has not begun, or
        ended before it did. A call's id is unique in its turn, those of `calls()` over all turns. Raises ContentNotKept
        when the turn has ended and its brain keeps content out of SQL, or a compaction took messages out of Redis
        before; InvalidInput; TurnNotFound.
        """
        most, left_out = checks.limit(limit), checks.after_count(after)
        return self._read(lambda wiring: make_history(wiring).transcript(self.session_id, self.turn_id, most, left_out))

    def file(self, sha256: str) -> File:
        """The bytes of an attachment of one of the turn's messages, by the hash in `Message.attachments`.

        Raises AttachmentNotFound for one that the turn has not, or no more (pruned, or kept out by `redact_logs`).
        """
        return self._read(lambda wiring: get_file(wiring.store, self.turn_id, sha256))

    def decision(self) -> RuntimeDecisionRecord | None:
        """How the turn came to its answer: strategy, tools, hashes of context and prompt, tokens, times; a moment after
        the result is out. None before, and for a turn that was refused.

        From the brain's own store (`Brain(decisions=...)`) where it has one and this process has the brain, else from
        SQL. Raises TurnNotFound.
        """
        self._row()
        return self._read(lambda wiring: wiring.decisions.get(self.turn_id))

    def calls(self, limit: int = checks.MAX_LISTED, after: str | None = None) -> tuple[TurnCall, ...]:
        """Every call of the turn in the model's order, with its arguments, its result and its status.

        limit    calls a page, up to 10,000
        after    the `id` of the last call of the page at hand

        Live from Redis, later from SQL, as they stood when the turn was over. Of a brain that keeps content out of SQL
        they have neither arguments nor results once it has ended, and say `is_kept=False`. Raises InvalidInput,
        TurnNotFound.
        """
        most, behind = checks.limit(limit), checks.after_call(self.turn_id, after)
        return self._read(lambda wiring: make_history(wiring).calls(self.session_id, self.turn_id, most, behind))

    def give_result(self, call_id: str, result: object, *, partial: bool = False) -> Taken:
        """Give a call of one of your `client_tools` its result, once: JSON, of at most 256,000 characters, a
        File, or `WithFiles(JSON, [File, ...])`.

        call_id   as `calls()` and the event `call.parked` have it; the full one is taken, too
        partial   it is not the whole result; the model reads that it is not

        Returns `settled`, or `late` when no call waits any more: the model reads it at its next step or turn.
        Raises ResultRefused for a call that was given one before, or waits for none; CallNotFound; InvalidInput.
        """
        call = self._call(call_id)
        return self._do(
            lambda wiring: wiring.people.outside.give_result(call, result, partial=partial),
            self._act("result", call_id),
        )

    def give_error(self, call_id: str, error: str | ToolError | OutcomeUnknown) -> Taken:
        """Give a call of one of your `client_tools` an error in place of a result. As `give_result`.

        error   one line for the model; or ToolError for longer words of your own, OutcomeUnknown for a change that may
                or may not have been made
        """
        call = self._call(call_id)
        return self._do(lambda wiring: wiring.people.outside.give_error(call, error), self._act("result", call_id))

    def _call(self, call_id: str) -> CallRef:
        return CallRef(self.session_id, self.turn_id, checks.call_id(self.turn_id, call_id))

    def cancel(self, reason: str = "") -> Cancelled:
        """Ask for the turn to be cancelled; outlives this process and every worker.

        A turn whose last answer is already there may still complete.

        Returns `cancelled` (it had not begun), `requested`, or `ended` (nothing to cancel).
        """
        return self._client.cancel(self.session_id, self.turn_id, reason)

    def delete_response(self) -> bool:
        """Note that the turn's answer is no longer given as a response, for HTTP APIs whose callers may delete one.

        The turn, its result and its session's history stay. Returns False if it was deleted before.
        """
        return self._do(
            lambda wiring: wiring.store.brakes.delete_response(self.session_id, self.turn_id),
            self._act("delete response"),
        )

    def is_response_deleted(self) -> bool:
        """Whether `delete_response` was called for the turn, by any process."""
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
        """Send follow-up input into the turn; the model reads it at its next step, and its task stays the same.

        client_message_id   the same one again, in this session, is the same message: give one to send safely again
        readiness           True lifts the turn's readiness hold, False sets one, None leaves it; with it the text
                            may be empty
        expected_turn_id    send it only if this is the session's live turn
        attachments         images and files, as of `Client.submit`; with them the text may be empty

        The receipt says `accepted`; later `receipt(...)` says `consumed`, and by which step, or `bounced`: the turn
        ended first, and the input became the turn it names. Raises InvalidInput, StaleTurn, MailboxFull, and
        SubmitConflict when the id was used for other input; Unreachable, whose `client_message_id` makes a second try
        the same input.
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
        """What became of an input of this session. Raises InputNotFound when it was never sent."""
        message_id = check_id("client_message_id", client_message_id)
        return self._read(lambda wiring: wiring.people.inputs.receipt(self.session_id, message_id))

    def hold(self, reason: str = "", *, expires_in_s: float = DEFAULT_HOLD_S, on_expiry: HoldPolicy = "deny") -> Hold:
        """Keep calls that change something from starting until the hold is released; reads go on.

        reason         for people; events show it
        expires_in_s   seconds it may stand at most
        on_expiry      then: `deny` the calls that wait, `release` them, or `cancel` the turn

        It does not use up the turn's time. Raises InvalidInput, also when the turn has ended.
        """
        spec = checks.hold("hold", reason, expires_in_s, on_expiry)
        hold_id = self._do(
            lambda wiring: waiting.hold_turn(wiring, self.session_id, self.turn_id, spec),
            self._act("hold", reason=spec.reason),
        )
        return Hold(self._client, self.session_id, self.turn_id, hold_id)

    def holds(self) -> tuple[StandingHold, ...]:
        """The holds that stand on the turn, its readiness flag among them."""
        return self._read(lambda wiring: wiring.state.holds.of_turn(self.session_id, self.turn_id))

    def release(self, hold_id: str) -> bool:
        """Release a hold that was placed elsewhere. False when it did not stand."""
        return release_hold(self._connection, self.session_id, self.turn_id, check_id("hold_id", hold_id))

    def approvals(self) -> tuple[Approval, ...]:
        """Every call of the turn that people are, or were, asked about, in the order they were asked."""
        return self._read(lambda wiring: wiring.people.approvals.of_turn(self.turn_id))

    def _act(self, act: str, subject: str = "", reason: str = "") -> NewAct:
        return NewAct(act, subject, reason=reason, session_id=self.session_id, turn_id=self.turn_id)

    def _next_batch(self, after: int, limits: waiting.WaitLimits) -> list[TurnEvent]:
        wait_s = min(waiting.POLL_S, limits.remaining_s(time.monotonic()))
        return self._read(lambda wiring: wiring.state.events.read(self.session_id, self.turn_id, after, wait_s))

    def _next_events(self, after: int, limits: waiting.WaitLimits) -> tuple[list[TurnEvent], bool]:
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
