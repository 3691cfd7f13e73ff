"""The errors that brainq raises to its callers. ERROR_KINDS has the exit code and the HTTP status of each class."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum


class BrainqError(Exception):
    """The base class of all errors that brainq raises deliberately."""


class InvalidInput(BrainqError, ValueError):
    """Input was refused before anything was stored or sent. `field` names it; the message tells what is accepted."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class NotFound(BrainqError, LookupError):
    """Nothing with this id or name exists. The subclasses tell what was looked for."""


class TurnNotFound(NotFound):
    """No turn has this id, in Redis or in SQL."""


class CallNotFound(NotFound):
    """The turn has no call with this id, or no longer exists."""


class ApprovalNotFound(NotFound):
    """No approval was requested for a call with this id."""


class InputNotFound(NotFound):
    """No input with this `client_message_id` was sent to the session."""


class AttachmentNotFound(NotFound):
    """The turn has no file with this hash: it never had, was pruned, or its brain keeps no content (`redact_logs`)."""


class ScheduleNotFound(NotFound):
    """No schedule has this name."""


class ContentNotKept(BrainqError, LookupError):
    """The turn's brain keeps content out of SQL (`redact_logs`), and Redis no longer has all of it, because the turn
    has ended or its messages were compacted."""


class TurnRejected(BrainqError):
    """The turn was refused at acceptance. `str(error)` is the reason, which is also in its SQL row."""


class TurnFailed(BrainqError):
    """The turn has no complete answer of the model. Raised by `result.raise_for_ending()`.

    ending, stop_reason   how the turn ended
    """

    def __init__(self, turn_id: str, ending: str, stop_reason: str, error: str = "") -> None:
        super().__init__(f"turn {turn_id!r} ended as {ending} ({stop_reason})" + (f": {error}" if error else ""))
        self.turn_id = turn_id
        self.ending = ending
        self.stop_reason = stop_reason


class TurnParked(BrainqError):
    """The turn waits for a person, or for the result of a client tool. Raised by `client.run()`.

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
    """The turn has no answer that matches an output schema: it had no schema, or it ended with another
    `stop_reason`."""

    def __init__(self, turn_id: str, stop_reason: str, why: str = "") -> None:
        super().__init__(
            f"turn {turn_id!r} has no parsed output: its stop reason is {stop_reason!r}{f' ({why})' if why else ''}; "
            "submit it with output_schema=..., and look at result.stop_reason first"
        )
        self.stop_reason = stop_reason


class ResultTimeout(BrainqError, TimeoutError):
    """The timeout of a wait for a result has passed. The turn continues; call again with the same handle."""


class SubmitConflict(BrainqError):
    """A request_key or turn_id was used before with other content. `used_by` is the turn that has the key."""

    def __init__(self, message: str, used_by: str = "") -> None:
        super().__init__(message)
        self.used_by = used_by


class SessionBusy(BrainqError):
    """The session has a live turn, and the new turn was submitted with `on_busy="reject"`. Nothing was queued.

    remedy   the remedy in the message, if it is not about a submit
    """

    def __init__(
        self, session_id: str, live_turn_id: str, remedy: str = "wait for it, or submit with another on_busy"
    ) -> None:
        super().__init__(f"session {session_id!r} is busy with turn {live_turn_id!r}; {remedy}")
        self.session_id = session_id
        self.live_turn_id = live_turn_id


class BuildUnserved(BrainqError):
    """The session is pinned to a brain that no worker has had for a minute, so its turns would wait in vain.

    build   the build that started the session; empty if it is not known
    """

    def __init__(self, session_id: str, build: str) -> None:
        super().__init__(
            f"session {session_id!r} is pinned to the brain of build {build!r}, which no worker has; start workers of "
            f"that build, or release its sessions: brainq versions release {build or 'BUILD'} --to BUILD"
        )
        self.session_id = session_id
        self.build = build


class QueueFull(BrainqError):
    """The highest number of waiting turns is reached. Nothing was stored; the same submit may succeed later.

    setting   the name of the setting with that number
    """

    def __init__(self, waiting: str, setting: str, limit: int) -> None:
        super().__init__(f"{waiting}, and {setting}={limit} allows no more; submit it again when some have started")
        self.setting = setting


class TurnForbidden(BrainqError):
    """Operators have forbidden the turn's brain or tenant. Nothing was queued; the message has the person and
    reason."""


class BudgetSpent(BrainqError):
    """A budget is spent, and new turns are refused. Nothing was stored; the same submit may succeed later.

    budget    the budget's name, such as `tenant acme:/day`
    ends_at   the end of its current window
    """

    def __init__(self, budget: str, ends_at: datetime) -> None:
        turns = ends_at.strftime("%Y-%m-%d %H:%M UTC")
        super().__init__(
            f"budget {budget} is spent until {turns}; raise it (`brainq budgets raise`), or submit it again then"
        )
        self.budget = budget
        self.ends_at = ends_at


class SchedulesFull(BrainqError):
    """The tenant has the highest number of schedules with a future run. Nothing was stored.

    setting   the name of the setting with that number
    """

    def __init__(self, tenant: str, setting: str, limit: int) -> None:
        owner = f"tenant {tenant!r} has" if tenant else "names without a tenant have"
        super().__init__(
            f"{owner} {limit} schedules with a future run, and {setting}={limit} allows no more; remove some "
            "(`brainq schedule list`, `brainq schedule remove`), or set it higher"
        )
        self.setting = setting


class StaleTurn(BrainqError):
    """The input was for a turn that is not the live one. Nothing was sent."""

    def __init__(self, expected_turn_id: str, live_turn_id: str) -> None:
        live = f"turn {live_turn_id!r} is live" if live_turn_id else "no turn is live"
        super().__init__(
            f"turn {expected_turn_id!r} is not live, {live}; look at it, then send the input again "
            "without expected_turn_id, or with that of the live turn"
        )
        self.expected_turn_id = expected_turn_id
        self.live_turn_id = live_turn_id


class ApprovalDecided(BrainqError):
    """The approval can no longer be decided like this. `state` is its current state."""

    def __init__(self, approval_id: str, state: str, problem: str) -> None:
        super().__init__(f"approval {approval_id}: {problem}")
        self.approval_id = approval_id
        self.state = state


class TokenRefused(BrainqError, LookupError):
    """No call waits for this token, or no longer does. The message has the reason, and never the token."""


class ResultRefused(BrainqError):
    """A call does not accept a result of its client: it does not wait for one, or it already has one (`was_given`)."""

    def __init__(self, message: str, *, was_given: bool = False) -> None:
        super().__init__(message)
        self.was_given = was_given


class ToolSchemaError(BrainqError, TypeError):
    """A tool's signature cannot be turned into a JSON schema."""


class ProviderError(BrainqError):
    """The model service failed after its retries.

    retryable   whether the same request may succeed later
    kind        a word such as `rate_limited`, `server`, `timeout`, `refused`, `malformed`
    """

    def __init__(self, message: str, *, kind: str, retryable: bool) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable


NOT_SENT = frozenset({"limited", "waited", "forbidden"})
"""The kinds of a ProviderError for a request that was never sent, so that the model did not fail."""


class ScriptError(BrainqError):
    """A Lua script was called with wrong names, or its reply is not declared in its header."""


class SetupError(BrainqError):
    """Something that brainq needs is missing or misconfigured. The message has the remedy."""


class BrainNotLoaded(SetupError):
    """The brain could not be loaded. `shown_traceback` is the traceback of the user's code, or empty without one."""

    def __init__(self, message: str, shown_traceback: str = "") -> None:
        super().__init__(message)
        self.shown_traceback = shown_traceback


class Unreachable(SetupError):
    """Redis or SQL does not answer. The same call may succeed later.

    request_key         the key of a submit that may have been accepted; submit again with it to get the same turn
    client_message_id   the id of an input that may have been accepted; send again with it to get the same input
    """

    def __init__(self, message: str, *, request_key: str = "", client_message_id: str = "") -> None:
        super().__init__(message)
        self.request_key = request_key
        self.client_message_id = client_message_id


class CellUnreachable(Unreachable):
    """A cell, or the directory of tenants' cells, does not answer. Tenants of other cells are not affected.

    cell   the name of the cell; "" for the directory
    """

    def __init__(self, cell: str, why: str, *, request_key: str = "", client_message_id: str = "") -> None:
        where = f"cell {cell!r}" if cell else "the directory of cells"
        super().__init__(
            f"{where} does not answer: {why}", request_key=request_key, client_message_id=client_message_id
        )
        self.cell = cell
        self.why = why


class TenantMoved(BrainqError):
    """The tenant has moved to another cell. A client follows automatically, and raises this only after three moves in a
    row.

    tenant        the tenant's key, such as `acme:`
    cell, epoch   its present cell; of two answers, the one with the higher epoch is right
    """

    def __init__(self, tenant: str, cell: str, epoch: int) -> None:
        super().__init__(f"tenant {tenant!r} is now in cell {cell!r} (epoch {epoch}); call that cell")
        self.tenant = tenant
        self.cell = cell
        self.epoch = epoch


class TenantMoving(BrainqError):
    """The tenant is being copied to another cell. The same call works again in a few seconds."""


class MoveFailed(BrainqError):
    """A tenant was not moved to another cell: nothing has changed, or another process continues the move."""


class MailboxFull(BrainqError):
    """The turn has the highest amount of input that no step has read yet. Nothing was sent."""

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
    """How a class of errors is reported.

    word            the last part of a problem's `type`, for programs
    title           the fixed title of the problem, for people
    exit            the exit code of a command
    status          the HTTP status of a response
    retry_after_s   when the same call may succeed; None if it will not without a change
    """

    word: str
    title: str
    exit: ExitCode
    status: int
    retry_after_s: int | None = None


ERROR_KINDS: dict[type[BrainqError], ErrorKind] = {
    InvalidInput: ErrorKind("invalid-input", "A field is wrong", ExitCode.USAGE, 422),
    NotFound: ErrorKind("not-found", "Nothing has this id", ExitCode.NOT_FOUND, 404),
    ContentNotKept: ErrorKind("content-not-kept", "The content is not kept", ExitCode.FAILED, 410),
    TurnRejected: ErrorKind("turn-rejected", "The turn was refused", ExitCode.FAILED, 409),
    TurnFailed: ErrorKind("turn-failed", "The turn has no complete answer", ExitCode.FAILED, 409),
    TurnParked: ErrorKind("turn-parked", "The turn waits for a person or a client", ExitCode.REFUSED, 409),
    NoParsedOutput: ErrorKind("no-parsed-output", "No answer matches the schema", ExitCode.FAILED, 409),
    ResultTimeout: ErrorKind("no-result-yet", "There is no result yet", ExitCode.WAITED_OUT, 504, 1),
    SessionBusy: ErrorKind("session-busy", "The session has a live turn", ExitCode.REFUSED, 409),
    BuildUnserved: ErrorKind("build-unserved", "No worker has the session's brain", ExitCode.REFUSED, 503, 30),
    MailboxFull: ErrorKind("mailbox-full", "The turn has too much unread input", ExitCode.REFUSED, 429, 2),
    QueueFull: ErrorKind("queue-full", "Too many turns wait", ExitCode.REFUSED, 429, 5),
    TurnForbidden: ErrorKind("turn-forbidden", "Operators have forbidden it", ExitCode.REFUSED, 403),
    BudgetSpent: ErrorKind("budget-spent", "A budget is spent", ExitCode.REFUSED, 429, 60),
    SchedulesFull: ErrorKind("schedules-full", "The tenant has too many schedules", ExitCode.REFUSED, 409),
    StaleTurn: ErrorKind("stale-turn", "Another turn is live", ExitCode.REFUSED, 409),
    ApprovalDecided: ErrorKind("approval-decided", "The approval has another decision", ExitCode.REFUSED, 409),
    TokenRefused: ErrorKind("token-refused", "No call waits for this token", ExitCode.REFUSED, 404),
    ResultRefused: ErrorKind("result-refused", "The call accepts no result", ExitCode.REFUSED, 409),
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
    AlreadyRuns: ErrorKind("already-runs", "It is already running", ExitCode.REFUSED, 503, 30),
    SetupError: ErrorKind("setup", "Something brainq needs is missing", ExitCode.SETUP, 503, 30),
    BrainqError: ErrorKind("error", "brainq refused it", ExitCode.FAILED, 500),
}


def kind_of(error: BrainqError) -> ErrorKind:
    """Return the kind of an error's class, or of its nearest base class that has one."""
    return next(ERROR_KINDS[cls] for cls in type(error).__mro__ if cls in ERROR_KINDS)
