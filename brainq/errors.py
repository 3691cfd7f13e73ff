"""What brainq raises to its callers, and when. ERROR_KINDS has the exit code and the HTTP status of each class."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum


class BrainqError(Exception):
    """The root of everything brainq raises on purpose."""


class InvalidInput(BrainqError, ValueError):
    """Input was refused before anything was stored or sent. `field` names it, and the message says what is accepted."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class NotFound(BrainqError, LookupError):
    """There is nothing of this id or name. The classes below say of what kind."""


class TurnNotFound(NotFound):
    """No turn has this id, in Redis or in SQL."""


class CallNotFound(NotFound):
    """The turn has no call of this id, or is gone."""


class ApprovalNotFound(NotFound):
    """No person was asked about a call of this id."""


class InputNotFound(NotFound):
    """No input with this `client_message_id` was sent to the session."""


class AttachmentNotFound(NotFound):
    """The turn has no file of this hash, or no more: it was pruned, or its brain keeps no content (`redact_logs`)."""


class ScheduleNotFound(NotFound):
    """No schedule has this name."""


class ContentNotKept(BrainqError, LookupError):
    """The turn's brain keeps content out of SQL (`redact_logs`), and Redis has not all of it any more: the turn has
    ended, or a compaction took messages out."""


class TurnRejected(BrainqError):
    """The turn was refused at acceptance; `str(error)` is the reason kept in its SQL row."""


class TurnFailed(BrainqError):
    """`result.raise_for_ending()`: the turn gave no whole answer of the model's own.

    `ending` and `stop_reason` say how it ended, as words.
    """

    def __init__(self, turn_id: str, ending: str, stop_reason: str, error: str = "") -> None:
        super().__init__(f"turn {turn_id!r} ended as {ending} ({stop_reason})" + (f": {error}" if error else ""))
        self.turn_id = turn_id
        self.ending = ending
        self.stop_reason = stop_reason


class TurnParked(BrainqError):
    """`client.run(...)`: the turn waits for a person, or for the result of a client tool. It goes on when it has that.

    awaits      `people` or `client`
    approvals   the ids of the calls that wait for a decision
    """

    def __init__(self, turn_id: str, session_id: str, awaits: str, approvals: tuple[str, ...] = ()) -> None:
        what = f"approvals: {', '.join(approvals)}" if approvals else "see client.handle(...).explain()"
        super().__init__(
            f"turn {turn_id!r} waits for {awaits} ({what}); decide, then client.handle({turn_id!r}).result()"
        )
        self.turn_id = turn_id
        self.session_id = session_id
        self.awaits = awaits
        self.approvals = approvals


class NoParsedOutput(BrainqError):
    """The turn has no answer that fits an output schema: it had none, or `stop_reason` says why."""

    def __init__(self, turn_id: str, stop_reason: str, why: str = "") -> None:
        super().__init__(
            f"turn {turn_id!r} has no parsed output: its stop reason is {stop_reason!r}{f' ({why})' if why else ''}; "
            "submit it with output_schema=..., and look at result.stop_reason first"
        )
        self.stop_reason = stop_reason


class ResultTimeout(BrainqError, TimeoutError):
    """The wait for a result ran out. The turn goes on; ask again with the same handle."""


class SubmitConflict(BrainqError):
    """A request_key or turn_id was used before, with other content. `used_by` is the turn that has the key."""

    def __init__(self, message: str, used_by: str = "") -> None:
        super().__init__(message)
        self.used_by = used_by


class SessionBusy(BrainqError):
    """The session has a live turn and it was submitted with `on_busy="reject"`. Nothing was queued.

    remedy   what to do about it, in place of what a submit could
    """

    def __init__(
        self, session_id: str, live_turn_id: str, remedy: str = "wait for it, or submit with another on_busy"
    ) -> None:
        super().__init__(f"session {session_id!r} is busy with turn {live_turn_id!r}; {remedy}")
        self.session_id = session_id
        self.live_turn_id = live_turn_id


class BuildUnserved(BrainqError):
    """The session keeps to a pinned brain that no worker has had for a minute. Its turns would wait in vain.

    `build` is the one that began it; empty where that is not known.
    """

    def __init__(self, session_id: str, build: str) -> None:
        super().__init__(
            f"session {session_id!r} keeps to the brain of build {build!r}, which no worker has; start workers of that "
            f"build, or release its sessions: brainq versions release {build or 'BUILD'} --to BUILD"
        )
        self.session_id = session_id
        self.build = build


class QueueFull(BrainqError):
    """As many turns wait as the deployment lets wait. Nothing was stored; the same submit may be taken later.

    `setting` is the one that says how many.
    """

    def __init__(self, waiting: str, setting: str, limit: int) -> None:
        super().__init__(f"{waiting}, and {setting}={limit} lets no more; submit it again when some have begun")
        self.setting = setting


class TurnForbidden(BrainqError):
    """Operators have forbidden the turn's brain or tenant. Nothing was queued; the message says who, and why."""


class BudgetSpent(BrainqError):
    """A budget is spent, and new turns are refused. Nothing was stored; the same submit may be taken later.

    `budget` is its name, such as `tenant acme:/day`; `ends_at` when its window turns.
    """

    def __init__(self, budget: str, ends_at: datetime) -> None:
        turns = ends_at.strftime("%Y-%m-%d %H:%M UTC")
        super().__init__(
            f"budget {budget} is spent until {turns}; raise it (`brainq budgets raise`), or submit it again then"
        )
        self.budget = budget
        self.ends_at = ends_at


class SchedulesFull(BrainqError):
    """A tenant has as many schedules with a run to come as the deployment allows. Nothing was stored.

    `setting` is the one that says how many.
    """

    def __init__(self, tenant: str, setting: str, limit: int) -> None:
        owner = f"tenant {tenant!r} has" if tenant else "names without a tenant have"
        super().__init__(
            f"{owner} {limit} schedules with a run to come, and {setting}={limit} allows no more; remove some "
            "(`brainq schedule list`, `brainq schedule remove`), or set it higher"
        )
        self.setting = setting


class StaleTurn(BrainqError):
    """Input was meant for a turn that is not the live one. Nothing was sent."""

    def __init__(self, expected_turn_id: str, live_turn_id: str) -> None:
        live = f"turn {live_turn_id!r} is live" if live_turn_id else "no turn is live"
        super().__init__(
            f"turn {expected_turn_id!r} is not live, {live}; look at it, then send the input again "
            "without expected_turn_id, or with that of the live turn"
        )
        self.expected_turn_id = expected_turn_id
        self.live_turn_id = live_turn_id


class ApprovalDecided(BrainqError):
    """An approval cannot be decided like this any more. `state` is its present one."""

    def __init__(self, approval_id: str, state: str, problem: str) -> None:
        super().__init__(f"approval {approval_id}: {problem}")
        self.approval_id = approval_id
        self.state = state


class TokenRefused(BrainqError, LookupError):
    """No call waits for this token (any more). The message says why, and never shows the token."""


class ResultRefused(BrainqError):
    """A call takes no result of its client: it waits for none, or `was_given` one before."""

    def __init__(self, message: str, *, was_given: bool = False) -> None:
        super().__init__(message)
        self.was_given = was_given


class ToolSchemaError(BrainqError, TypeError):
    """A tool's signature cannot be turned into a JSON schema."""


class ProviderError(BrainqError):
    """The model service failed after its retries.

    `retryable` says whether the same request may succeed later; `kind` is a short word such as
    `rate_limited`, `server`, `timeout`, `refused`, `malformed`.
    """

    def __init__(self, message: str, *, kind: str, retryable: bool) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable


NOT_SENT = frozenset({"limited", "waited", "forbidden"})

"""Kinds of a ProviderError for a request that was never sent: the model did not fail."""


class ScriptError(BrainqError):
    """A Lua script was called with wrong names, or replied a word its header does not declare."""


class SetupError(BrainqError):
    """Something brainq needs is missing or misconfigured; the message says how to get it."""


class BrainNotLoaded(SetupError):
    """The brain could not be loaded. `shown_traceback` leads through the user's code; empty if it did not fail."""

    def __init__(self, message: str, shown_traceback: str = "") -> None:
        super().__init__(message)
        self.shown_traceback = shown_traceback


class Unreachable(SetupError):
    """Redis or SQL does not answer. Nothing else need be wrong: the same may work later.

    request_key         of a submit that may have been accepted: submitted again under it, it is the same turn
    client_message_id   of input that may have been accepted: sent again under it, it is the same input
    """

    def __init__(self, message: str, *, request_key: str = "", client_message_id: str = "") -> None:
        super().__init__(message)
        self.request_key = request_key
        self.client_message_id = client_message_id


class CellUnreachable(Unreachable):
    """A cell, or the directory that says where a tenant is, does not answer. Tenants of other cells are not concerned.

    cell   its name; "" where it is the directory
    """

    def __init__(self, cell: str, why: str, *, request_key: str = "", client_message_id: str = "") -> None:
        where = f"cell {cell!r}" if cell else "the directory of cells"
        super().__init__(
            f"{where} does not answer: {why}", request_key=request_key, client_message_id=client_message_id
        )
        self.cell = cell
        self.why = why


class TenantMoved(BrainqError):
    """The tenant is in another cell by now. A client follows by itself, and raises it only where it is sent on three
    times.

    tenant        its key, such as `acme:`
    cell, epoch   where it is now; of two answers the one with the higher epoch is right
    """

    def __init__(self, tenant: str, cell: str, epoch: int) -> None:
        super().__init__(f"tenant {tenant!r} is in cell {cell!r} (epoch {epoch}); ask there")
        self.tenant = tenant
        self.cell = cell
        self.epoch = epoch


class TenantMoving(BrainqError):
    """The tenant is copied to another cell just now. The same works again in some seconds."""


class MoveFailed(BrainqError):
    """A tenant was not moved to another cell: everything is as it was, or another process goes on with it."""


class MailboxFull(BrainqError):
    """A turn has been sent as much input as it may that no step has read yet. Nothing was sent."""

    def __init__(self, turn_id: str, inputs: int, size: int) -> None:
        super().__init__(
            f"turn {turn_id!r} has {inputs} inputs ({size:,} bytes) that no step has read; wait until it has read "
            "some, then send it under a new client_message_id; or submit a turn"
        )
        self.turn_id = turn_id


class AlreadyRuns(SetupError):
    """Another process already runs this on the same directory."""


class ExitCode(IntEnum):
    """The exit codes of `brainq`."""

    OK = 0
    FAILED = 1
    USAGE = 2
    TIMED_OUT = 3
    CANCELLED = 4
    NOT_FOUND = 5
    SETUP = 6
    WAITED_OUT = 7
    REFUSED = 8
    BUG = 70
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """How one kind of error is reported.

    word            for programs: the end of a problem's `type`
    title           for people: what kind of trouble it is, the same each time
    exit            how a command ends by it
    status          how a request is answered
    retry_after_s   the same may work then; None: it will not by itself
    """

    word: str
    title: str
    exit: ExitCode
    status: int
    retry_after_s: int | None = None


ERROR_KINDS: dict[type[BrainqError], ErrorKind] = {
    InvalidInput: ErrorKind("invalid-input", "A field is wrong", ExitCode.USAGE, 422),
    NotFound: ErrorKind("not-found", "There is nothing of this id", ExitCode.NOT_FOUND, 404),
    ContentNotKept: ErrorKind("content-not-kept", "The content is not kept", ExitCode.FAILED, 410),
    TurnRejected: ErrorKind("turn-rejected", "The turn was refused", ExitCode.FAILED, 409),
    TurnFailed: ErrorKind("turn-failed", "The turn has no whole answer", ExitCode.FAILED, 409),
    TurnParked: ErrorKind("turn-parked", "The turn waits for a person or a client", ExitCode.REFUSED, 409),
    NoParsedOutput: ErrorKind("no-parsed-output", "No answer fits the schema", ExitCode.FAILED, 409),
    ResultTimeout: ErrorKind("no-result-yet", "There is no result yet", ExitCode.WAITED_OUT, 504, 1),
    SessionBusy: ErrorKind("session-busy", "The session has a live turn", ExitCode.REFUSED, 409),
    BuildUnserved: ErrorKind("build-unserved", "No worker has the session's brain", ExitCode.REFUSED, 503, 30),
    MailboxFull: ErrorKind("mailbox-full", "The turn has too much unread input", ExitCode.REFUSED, 429, 2),
    QueueFull: ErrorKind("queue-full", "Too many turns wait", ExitCode.REFUSED, 429, 5),
    TurnForbidden: ErrorKind("turn-forbidden", "Operators have forbidden it", ExitCode.REFUSED, 403),
    BudgetSpent: ErrorKind("budget-spent", "A budget is spent", ExitCode.REFUSED, 429, 60),
    SchedulesFull: ErrorKind("schedules-full", "The tenant has too many schedules", ExitCode.REFUSED, 409),
    StaleTurn: ErrorKind("stale-turn", "Another turn is live", ExitCode.REFUSED, 409),
    ApprovalDecided: ErrorKind("approval-decided", "The approval is decided otherwise", ExitCode.REFUSED, 409),
    TokenRefused: ErrorKind("token-refused", "No call waits for this token", ExitCode.REFUSED, 404),
    ResultRefused: ErrorKind("result-refused", "The call takes no result", ExitCode.REFUSED, 409),
    MoveFailed: ErrorKind("move-failed", "The tenant was not moved", ExitCode.REFUSED, 409),
    TenantMoved: ErrorKind("tenant-moved", "The tenant is in another cell", ExitCode.SETUP, 503, 2),
    TenantMoving: ErrorKind("tenant-moving", "The tenant moves to another cell", ExitCode.SETUP, 503, 2),
    SubmitConflict: ErrorKind("submit-conflict", "This key was used before with other content", ExitCode.USAGE, 409),
    ToolSchemaError: ErrorKind("tool-schema", "A tool has no schema", ExitCode.FAILED, 500),
    ProviderError: ErrorKind("provider", "The model service failed", ExitCode.FAILED, 502),
    ScriptError: ErrorKind("script", "A script was called wrongly", ExitCode.FAILED, 500),
    CellUnreachable: ErrorKind("cell-unreachable", "A cell does not answer", ExitCode.SETUP, 503, 2),
    Unreachable: ErrorKind("unreachable", "Redis or SQL does not answer", ExitCode.SETUP, 503, 2),
    BrainNotLoaded: ErrorKind("brain-not-loaded", "The brain could not be loaded", ExitCode.SETUP, 503, 30),
    AlreadyRuns: ErrorKind("already-runs", "It runs already", ExitCode.REFUSED, 503, 30),
    SetupError: ErrorKind("setup", "Something brainq needs is missing", ExitCode.SETUP, 503, 30),
    BrainqError: ErrorKind("error", "brainq refused it", ExitCode.FAILED, 500),
}


def kind_of(error: BrainqError) -> ErrorKind:
    """The kind of an error: its own class's, else that of the nearest class above."""
    return next(ERROR_KINDS[cls] for cls in type(error).__mro__ if cls in ERROR_KINDS)
