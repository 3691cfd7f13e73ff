"""Generated from the headers in `lua/` by `python -m ops.typed_scripts`: change a header, then run that.

One method a script, which makes its call. A reply that says more than its word is a dataclass; the others are their
words.
"""

# ruff: noqa: A002, E501
# fmt: off
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from brainq.contracts.people import ApprovalState, HoldPolicy
from brainq.contracts.status import Effect, Ending, StopReason, TraceStatus, TurnState
from brainq.contracts.turn import OnBusy, Priority, TurnKind
from brainq.state.connection import Client, as_mapping
from brainq.state.doorbells import Doorbells, Outbox
from brainq.state.keys import Keys
from brainq.state.scripts import LoadedScripts, ReadReply, ScriptCall, undeclared

HEADERS = {
    "approval_decide": "9a890a6b48", "aux_begin": "76015e5848", "aux_commit": "aac66e5eb8",
    "budget_claim": "bbaea5448e", "budget_create": "38652fb6b8", "budget_spend": "ddf97fb886",
    "call_beat": "9131086a51", "call_claim": "8ff43260ba", "call_give_up": "fc89cdbda3",
    "call_next_attempt": "45a9190a43", "call_park": "088ab70340", "call_progress": "984f72c9d9",
    "call_settle": "2a8cb3d753", "call_start": "9131086a51", "call_token": "050f2fb00e", "call_unstarted": "c99968bc70",
    "capacity_keep": "41d64cb20f", "finalize_ahead": "0e0afc1575", "finalize_beat": "bedd440e5c",
    "finalize_claim": "ecf4322c82", "finalize_finish": "672d69f659", "finalize_retry": "852897e599",
    "finalize_send": "3467e63760", "finalize_settle": "b275e9a061", "flag_add": "22f10e7ee5",
    "flag_release": "9e4f687d43", "gate_shut": "39819d2d7f", "history_compact": "432ac68c8d",
    "hold_place": "a787ea4722", "hold_release": "5cc5dc5e34", "hooks_done": "f97c3c0eb5", "index_drop": "408a87d205",
    "index_hasten": "96610a6713", "index_take": "3b3421c229", "judge_pass": "bd32796687", "judge_ring": "52e40341fc",
    "lane_beat": "c2659b22a6", "lane_check": "0b86e65355", "lane_lapsed": "56ea33fa6d", "leases_lapse": "140487f7c2",
    "mailbox_put": "a62332240b", "metrics_flush": "5b06af3d07", "money_grant": "fa477aa695",
    "money_resume": "6d78933d50", "money_return": "e90b5d2421", "money_settle": "8134774b6a",
    "money_take": "d24bfd52fd", "moved_word": "874ea36dbb", "opening_skip": "79dfbe662b",
    "outside_complete": "eea5a35b53", "presence_forget": "eb6ef8dfa4", "presence_join": "389a1d8215",
    "presence_look": "ce48d3a88d", "quarantine_wait": "de7169baf6", "rate_leave": "57d48e34f1",
    "rate_report": "ca4bf408dc", "rate_settle": "f29cd86841", "rate_take": "940292ff61", "request_tried": "77bc694a26",
    "request_try": "458e2f7f70", "result_amend": "7512616928", "result_publish": "7e86f1ea46",
    "session_pause": "b38ecc667b", "session_resume": "89a1d4e3ff", "share_look": "ff579b8764",
    "share_put": "da7e142bbf", "step_begin": "25a713099e", "step_commit": "0da4aece8c", "step_delta": "9b6b3e4eab",
    "step_retry": "7ad5551a01", "stop_drop": "f45cd46c79", "stop_put": "e69099a24b", "tenant_hide": "297e9bf8af",
    "tenant_show": "5afeaa59bc", "turn_beat": "49b1eae1e2", "turn_begin": "cfb21dd55b", "turn_blame": "31e53bf250",
    "turn_cancel": "1650dfcf66", "turn_claim": "fab0c8eab4", "turn_end": "6a7ca10f57", "turn_messages": "e7e9aeb6eb",
    "turn_open": "372f2fa52a", "turn_park": "89b30ce613", "turn_release": "2f8b71e6e9", "turn_submit": "d0eac87024",
    "turn_sweep": "010b9ee252", "turn_transcript": "632790e6fe", "turn_wait": "17a8cce60b", "turn_waited": "92457e7f9f",
    "waits_expire": "e4d08837f0",
}
"""Fingerprints: the loader refuses a script whose header is not the one its method was made from."""


def _closed(script: str, word: Any, declared: tuple[str, ...]) -> Any:
    """`word`, if it is one of those declared. Raises ScriptError."""
    if word not in declared:
        raise undeclared(script, word, declared)
    return word


@dataclass(frozen=True, slots=True)
class ApprovalDecideDecided:
    state: ApprovalState

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(_closed("approval_decide", reply[1], get_args(ApprovalState)))


@dataclass(frozen=True, slots=True)
class ApprovalDecideEnded:
    state: TurnState

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(TurnState(reply[1]))


@dataclass(frozen=True, slots=True)
class AuxBeginMoney:
    why: Literal["wait", "short"]
    window: str
    start: int
    wanted: str
    expected: str
    in_flight: int
    is_new: bool

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(
            _closed("aux_begin", reply[1], ("wait", "short")), reply[2], int(reply[3]), reply[4], reply[5],
            int(reply[6]), reply[7] == "1",
        )


@dataclass(frozen=True, slots=True)
class AuxBeginSpent:
    what: Literal["tokens", "cost", "reflections"]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(_closed("aux_begin", reply[1], ("tokens", "cost", "reflections")))


@dataclass(frozen=True, slots=True)
class BudgetClaimDone:
    claims: tuple[Literal["CLAIMED", "ALREADY", "SPENT"], ...]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(tuple(_closed("budget_claim", word, ("CLAIMED", "ALREADY", "SPENT")) for word in reply[1:]))


@dataclass(frozen=True, slots=True)
class CallClaimGo:
    spec: str
    cap_ms: int
    remaining_ms: int
    effect: Effect
    tool: str
    step: int
    edited: bool
    brain: str
    waited_ms: int
    lane_waited_ms: int

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(
            reply[1], int(reply[2]), int(reply[3]), Effect(reply[4]), reply[5], int(reply[6]), reply[7] == "1",
            reply[8], int(reply[9]), int(reply[10]),
        )


@dataclass(frozen=True, slots=True)
class CallClaimDrop:
    why: TraceStatus | Literal["gone", "stale", "unserved", "closed", "expired", "held", "stopped", "no_brain", "other_build", "other_format"]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(
            reply[1] if reply[1] in ("gone", "stale", "unserved", "closed", "expired", "held", "stopped", "no_brain", "other_build", "other_format") else TraceStatus(reply[1]),
        )


@dataclass(frozen=True, slots=True)
class CallGiveUpGone:
    status: TraceStatus | Literal["gone"]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1] if reply[1] in ("gone",) else TraceStatus(reply[1]))


@dataclass(frozen=True, slots=True)
class CallNextAttemptAgain:
    attempt: int

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]))


@dataclass(frozen=True, slots=True)
class CallNextAttemptGone:
    status: TraceStatus | Literal["gone"]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1] if reply[1] in ("gone",) else TraceStatus(reply[1]))


@dataclass(frozen=True, slots=True)
class CallParkLate:
    status: TraceStatus

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(TraceStatus(reply[1]))


@dataclass(frozen=True, slots=True)
class CallParkLost:
    status: TraceStatus | Literal["gone"]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1] if reply[1] in ("gone",) else TraceStatus(reply[1]))


@dataclass(frozen=True, slots=True)
class CallSettleLate:
    status: TraceStatus

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(TraceStatus(reply[1]))


@dataclass(frozen=True, slots=True)
class CallSettleLost:
    status: TraceStatus | Literal["gone"]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1] if reply[1] in ("gone",) else TraceStatus(reply[1]))


@dataclass(frozen=True, slots=True)
class CallTokenGiven:
    token: str

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1])


@dataclass(frozen=True, slots=True)
class CallUnstartedGone:
    status: TraceStatus | Literal["gone"]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1] if reply[1] in ("gone",) else TraceStatus(reply[1]))


@dataclass(frozen=True, slots=True)
class CapacityKeepKept:
    live: int
    asked: tuple[str, ...]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]), tuple(reply[2].split()))


@dataclass(frozen=True, slots=True)
class FinalizeAheadGo:
    fence: int
    revision: int
    sent: bool
    failing: str

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]), int(reply[2]), reply[3] == "1", reply[4])


@dataclass(frozen=True, slots=True)
class FinalizeClaimGo:
    fence: int
    tries: int
    revision: int
    sent: bool
    lost: int
    brain: str
    waited_ms: int
    ahead: str
    past: str
    failing: str

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(
            int(reply[1]), int(reply[2]), int(reply[3]), reply[4] == "1", int(reply[5]), reply[6], int(reply[7]),
            reply[8], reply[9], reply[10],
        )


@dataclass(frozen=True, slots=True)
class FinalizeClaimDrop:
    why: Literal["gone", "stale", "held", "later", "no_brain", "other_build", "other_format"]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(
            _closed("finalize_claim", reply[1], ("gone", "stale", "held", "later", "no_brain", "other_build", "other_format")),
        )


@dataclass(frozen=True, slots=True)
class FinalizeSendGo:
    fence: int
    tries: int
    revision: int
    sent: bool

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]), int(reply[2]), int(reply[3]), reply[4] == "1")


@dataclass(frozen=True, slots=True)
class FinalizeSettleGo:
    fence: int
    tries: int
    revision: int
    sent: bool

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]), int(reply[2]), int(reply[3]), reply[4] == "1")


@dataclass(frozen=True, slots=True)
class FlagReleaseTaken:
    turn: str

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1])


@dataclass(frozen=True, slots=True)
class HoldPlaceEnded:
    state: TurnState

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(TurnState(reply[1]))


@dataclass(frozen=True, slots=True)
class IndexTakeDue:
    stepped: int
    members: tuple[str, ...]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]), tuple(reply[2:]))


@dataclass(frozen=True, slots=True)
class LaneLapsedLapsed:
    mark: str
    holders: tuple[str, ...]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1], tuple(reply[2:]))


@dataclass(frozen=True, slots=True)
class LeasesLapseLapsed:
    leases: int

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]))


@dataclass(frozen=True, slots=True)
class MailboxPutFull:
    inputs: int
    bytes: int

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]), int(reply[2]))


@dataclass(frozen=True, slots=True)
class MailboxPutAlready:
    receipt: str
    state: TurnState

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1], TurnState(reply[2]))


@dataclass(frozen=True, slots=True)
class MailboxPutSealed:
    state: TurnState

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(TurnState(reply[1]))


@dataclass(frozen=True, slots=True)
class MailboxPutMoved:
    cell: str
    epoch: int

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1], int(reply[2]))


@dataclass(frozen=True, slots=True)
class MoneyResumeOk:
    resumed: int

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]))


@dataclass(frozen=True, slots=True)
class MoneyReturnReturned:
    returned: str

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1])


@dataclass(frozen=True, slots=True)
class MoneyTakeMoney:
    why: Literal["wait", "short"]
    window: str
    start: int
    wanted: str
    expected: str
    in_flight: int
    is_new: bool

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(
            _closed("money_take", reply[1], ("wait", "short")), reply[2], int(reply[3]), reply[4], reply[5],
            int(reply[6]), reply[7] == "1",
        )


@dataclass(frozen=True, slots=True)
class MovedWordChanged:
    word: str

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1])


@dataclass(frozen=True, slots=True)
class OutsideCompleteLate:
    status: TraceStatus

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(TraceStatus(reply[1]))


@dataclass(frozen=True, slots=True)
class PresenceLookLooked:
    gone: tuple[str, ...]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(tuple(reply[1:]))


@dataclass(frozen=True, slots=True)
class RateTakeWait:
    wait_ms: int
    what: Literal["requests", "tokens", "stop"]
    most: int

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]), _closed("rate_take", reply[2], ("requests", "tokens", "stop")), int(reply[3]))


@dataclass(frozen=True, slots=True)
class RateTakeLate:
    wait_ms: int
    what: Literal["requests", "tokens", "stop"]
    most: int

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]), _closed("rate_take", reply[2], ("requests", "tokens", "stop")), int(reply[3]))


@dataclass(frozen=True, slots=True)
class RequestTryKey:
    key: str

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1])


@dataclass(frozen=True, slots=True)
class SessionResumeResumed:
    turn: str

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1])


@dataclass(frozen=True, slots=True)
class ShareLookSeen:
    mark: int
    share: int
    used: int
    waits: bool
    requests: int

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]), int(reply[2]), int(reply[3]), reply[4] == "1", int(reply[5]))


@dataclass(frozen=True, slots=True)
class StepBeginGo:
    step: int
    attempt: int

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]), int(reply[2]))


@dataclass(frozen=True, slots=True)
class StepBeginSpent:
    what: Literal["steps", "tokens", "cost"]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(_closed("step_begin", reply[1], ("steps", "tokens", "cost")))


@dataclass(frozen=True, slots=True)
class StepBeginMoney:
    why: Literal["wait", "short"]
    window: str
    start: int
    wanted: str
    expected: str
    in_flight: int
    is_new: bool

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(
            _closed("step_begin", reply[1], ("wait", "short")), reply[2], int(reply[3]), reply[4], reply[5],
            int(reply[6]), reply[7] == "1",
        )


@dataclass(frozen=True, slots=True)
class StepCommitBudget:
    refused: tuple[str, ...]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(tuple(reply[1].split()))


@dataclass(frozen=True, slots=True)
class TenantHideBusy:
    turn: str

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1])


@dataclass(frozen=True, slots=True)
class TurnBlameBlamed:
    died: int

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]))


@dataclass(frozen=True, slots=True)
class TurnCancelEnded:
    state: TurnState

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(TurnState(reply[1]))


@dataclass(frozen=True, slots=True)
class TurnClaimGo:
    fence: int
    now: int
    lost: bool
    stops: str
    only_ends: bool

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]), int(reply[2]), reply[3] == "1", reply[4], reply[5] == "1")


@dataclass(frozen=True, slots=True)
class TurnClaimDrop:
    why: TurnState | Literal["gone", "stale", "held", "grace", "suspect", "awaits", "no_brain", "other_build", "other_format"]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(
            reply[1] if reply[1] in ("gone", "stale", "held", "grace", "suspect", "awaits", "no_brain", "other_build", "other_format") else TurnState(reply[1]),
        )


@dataclass(frozen=True, slots=True)
class TurnEndEnded:
    next: str
    bounced: tuple[str, ...]
    children: tuple[str, ...]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1], tuple(reply[2].split()), tuple(reply[3].split()))


@dataclass(frozen=True, slots=True)
class TurnMessagesSaid:
    messages: tuple[str, ...]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(tuple(reply[1:]))


@dataclass(frozen=True, slots=True)
class TurnSubmitQueued:
    ahead: int
    stopped: tuple[str, ...]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]), tuple(reply[2].split()))


@dataclass(frozen=True, slots=True)
class TurnSubmitExists:
    state: TurnState

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(TurnState(reply[1]))


@dataclass(frozen=True, slots=True)
class TurnSubmitBusy:
    live: str

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1])


@dataclass(frozen=True, slots=True)
class TurnSubmitMoved:
    cell: str
    epoch: int

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1], int(reply[2]))


@dataclass(frozen=True, slots=True)
class TurnSubmitForbidden:
    stop: str

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1])


@dataclass(frozen=True, slots=True)
class TurnSubmitUnserved:
    build: str

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1])


@dataclass(frozen=True, slots=True)
class TurnSweepLook:
    fence: int
    actions: tuple[tuple[str, ...], ...]
    lost: bool

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(int(reply[1]), tuple(tuple(row.split()) for row in reply[2].split(",") if row), reply[3] == "1")


@dataclass(frozen=True, slots=True)
class TurnTranscriptSaid:
    trace: Mapping[str, str]
    receipts: Mapping[str, str]
    messages: tuple[str, ...]

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(as_mapping(reply[1]), as_mapping(reply[2]), tuple(reply[3:]))


@dataclass(frozen=True, slots=True)
class WaitsExpireCancel:
    reason: str

    @classmethod
    def read(cls, reply: list[Any]) -> Self:
        return cls(reply[1])

FULLER: Mapping[str, Mapping[str, ReadReply]] = {
    "approval_decide": {"DECIDED": ApprovalDecideDecided.read, "ENDED": ApprovalDecideEnded.read},
    "aux_begin": {"MONEY": AuxBeginMoney.read, "SPENT": AuxBeginSpent.read},
    "budget_claim": {"DONE": BudgetClaimDone.read}, "call_claim": {"GO": CallClaimGo.read, "DROP": CallClaimDrop.read},
    "call_give_up": {"GONE": CallGiveUpGone.read},
    "call_next_attempt": {"AGAIN": CallNextAttemptAgain.read, "GONE": CallNextAttemptGone.read},
    "call_park": {"LATE": CallParkLate.read, "LOST": CallParkLost.read},
    "call_settle": {"LATE": CallSettleLate.read, "LOST": CallSettleLost.read},
    "call_token": {"GIVEN": CallTokenGiven.read}, "call_unstarted": {"GONE": CallUnstartedGone.read},
    "capacity_keep": {"KEPT": CapacityKeepKept.read}, "finalize_ahead": {"GO": FinalizeAheadGo.read},
    "finalize_claim": {"GO": FinalizeClaimGo.read, "DROP": FinalizeClaimDrop.read},
    "finalize_send": {"GO": FinalizeSendGo.read}, "finalize_settle": {"GO": FinalizeSettleGo.read},
    "flag_release": {"TAKEN": FlagReleaseTaken.read}, "hold_place": {"ENDED": HoldPlaceEnded.read},
    "index_take": {"DUE": IndexTakeDue.read}, "lane_lapsed": {"LAPSED": LaneLapsedLapsed.read},
    "leases_lapse": {"LAPSED": LeasesLapseLapsed.read},
    "mailbox_put": {"FULL": MailboxPutFull.read, "ALREADY": MailboxPutAlready.read, "SEALED": MailboxPutSealed.read, "MOVED": MailboxPutMoved.read},
    "money_resume": {"OK": MoneyResumeOk.read}, "money_return": {"RETURNED": MoneyReturnReturned.read},
    "money_take": {"MONEY": MoneyTakeMoney.read}, "moved_word": {"CHANGED": MovedWordChanged.read},
    "outside_complete": {"LATE": OutsideCompleteLate.read}, "presence_look": {"LOOKED": PresenceLookLooked.read},
    "rate_take": {"WAIT": RateTakeWait.read, "LATE": RateTakeLate.read}, "request_try": {"KEY": RequestTryKey.read},
    "session_resume": {"RESUMED": SessionResumeResumed.read}, "share_look": {"SEEN": ShareLookSeen.read},
    "step_begin": {"GO": StepBeginGo.read, "SPENT": StepBeginSpent.read, "MONEY": StepBeginMoney.read},
    "step_commit": {"BUDGET": StepCommitBudget.read}, "tenant_hide": {"BUSY": TenantHideBusy.read},
    "turn_blame": {"BLAMED": TurnBlameBlamed.read}, "turn_cancel": {"ENDED": TurnCancelEnded.read},
    "turn_claim": {"GO": TurnClaimGo.read, "DROP": TurnClaimDrop.read}, "turn_end": {"ENDED": TurnEndEnded.read},
    "turn_messages": {"SAID": TurnMessagesSaid.read},
    "turn_submit": {"QUEUED": TurnSubmitQueued.read, "EXISTS": TurnSubmitExists.read, "BUSY": TurnSubmitBusy.read, "MOVED": TurnSubmitMoved.read, "FORBIDDEN": TurnSubmitForbidden.read, "UNSERVED": TurnSubmitUnserved.read},
    "turn_sweep": {"LOOK": TurnSweepLook.read}, "turn_transcript": {"SAID": TurnTranscriptSaid.read},
    "waits_expire": {"CANCEL": WaitsExpireCancel.read},
}
"""How replies are read that say more than their word."""


class Scripts(LoadedScripts):
    """All scripts, by name: each method makes a call, which is to be run."""

    def __init__(self, client: Client, keys: Keys, doorbells: Doorbells, outbox: Outbox | None = None) -> None:
        super().__init__(client, keys, doorbells, HEADERS, FULLER, outbox)

    def approval_decide(
        self, session_id: str, turn_id: str, *, call: str, expect: str, decision: Literal["approved", "denied"],
        who: str, comment: str, edit: str,
    ) -> ScriptCall[ApprovalDecideDecided | ApprovalDecideEnded | Literal["APPROVED", "DENIED", "EXPIRED", "STALE", "GONE"]]:
        """Decide an approval, once: `decision` is `approved` or `denied`."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["approval_decide"], session_id, [
            turn_key, turn_key + ":budget", turn_key + ":trace", session_key + "history", turn_key + ":events",
            turn_key + ":guard", session_id, turn_id, call, expect, decision, who, comment, edit,
        ])

    def aux_begin(
        self, session_id: str, turn_id: str, *, owner: str, fence: int, kind: Literal["reflection", "compaction"],
        mark: str, tokens: int, usd: float | None, under_way: str, money: str,
    ) -> ScriptCall[AuxBeginMoney | AuxBeginSpent | Literal["GO", "DONE", "LOST"]]:
        """Begin a model call beside the steps: a reflection, or a compaction."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["aux_begin"], session_id, [
            turn_key, turn_key + ":budget", owner, fence, kind, mark, tokens, "" if usd is None else repr(usd),
            under_way, money,
        ])

    def aux_commit(
        self, session_id: str, turn_id: str, *, owner: str, fence: int, kind: str, item: str, input: int, output: int,
        cache_read: int, cache_creation: int, cost: float | None, spend: str, data: str,
    ) -> ScriptCall[Literal["COMMITTED", "LOST"]]:
        """Commit a reflection: its note enters the history (none when it brought nothing), what it used is paid, and
        the coordinator is rung for the step itself."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["aux_commit"], session_id, [
            turn_key, turn_key + ":budget", session_key + "history", turn_key + ":events", turn_key + ":spends",
            session_id, turn_id, owner, fence, kind, item, input, output, cache_read, cache_creation,
            "" if cost is None else repr(cost), spend, data,
        ])

    def budget_claim(
        self, session_id: str, turn_id: str, *, kind: str, ids: Sequence[str],
    ) -> ScriptCall[BudgetClaimDone | Literal["EXPIRED"]]:
        """Claim units of one kind (steps, tool_calls, reflections): never more than its maximum, whoever asks."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["budget_claim"], session_id, [turn_key, turn_key + ":budget", kind, *ids])

    def budget_create(
        self, session_id: str, turn_id: str, *, timeout_ms: int, max_steps: int, max_tool_calls: int,
        max_reflections: int, max_context_tokens: int, max_total_tokens: int | None, max_cost_usd: float | None,
        keep_ms: int,
    ) -> ScriptCall[Literal["CREATED", "EXISTS"]]:
        """Make a budget, once."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["budget_create"], session_id, [
            turn_key + ":budget", timeout_ms, max_steps, max_tool_calls, max_reflections, max_context_tokens,
            "" if max_total_tokens is None else max_total_tokens, "" if max_cost_usd is None else repr(max_cost_usd),
            keep_ms,
        ])

    def budget_spend(
        self, session_id: str, turn_id: str, *, id: str, input: int, output: int, cache_read: int, cache_creation: int,
        cost: float | None,
    ) -> ScriptCall[Literal["ADDED", "ALREADY", "GONE"]]:
        """Add what a model call used."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["budget_spend"], session_id, [
            turn_key + ":budget", id, input, output, cache_read, cache_creation, "" if cost is None else repr(cost),
        ])

    def call_beat(
        self, session_id: str, turn_id: str, *, owner: str, call: str, attempt: int, lease_ms: int,
    ) -> ScriptCall[Literal["OK", "CLOSED", "LOST"]]:
        """Renew the lease of a running call and that of its lanes, or learn that it is no longer wanted."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["call_beat"], session_id, [
            turn_key, turn_key + ":trace", self.keys.lane_leases, session_id, turn_id, owner, call, attempt, lease_ms,
        ])

    def call_claim(
        self, session_id: str, turn_id: str, *, owner: str, call: str, attempt: int, lease_ms: int,
        serves: Sequence[str], brains: Sequence[str],
    ) -> ScriptCall[CallClaimGo | CallClaimDrop]:
        """Take a dispatched call to run it."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["call_claim"], session_id, [
            turn_key, turn_key + ":budget", turn_key + ":trace", session_key + "history", turn_key + ":events",
            turn_key + ":guard", self.keys.run, session_id, turn_id, owner, call, attempt, lease_ms, " ".join(serves),
            " ".join(brains),
        ])

    def call_give_up(
        self, session_id: str, turn_id: str, *, call: str, attempt: int, status: TraceStatus, message: str, detail: str,
        retryable: bool, outcome: str,
    ) -> ScriptCall[CallGiveUpGone | Literal["SETTLED", "ALIVE"]]:
        """Settle a call whose worker is gone and which must not run again: unknown, failed, or as SQL recorded its
        end."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["call_give_up"], session_id, [
            turn_key, turn_key + ":budget", turn_key + ":trace", session_key + "history", turn_key + ":events",
            turn_key + ":guard", turn_key + ":sources", turn_key + ":blocked", session_id, turn_id, call, attempt,
            status, message, detail, "1" if retryable else "0", outcome,
        ])

    def call_next_attempt(
        self, session_id: str, turn_id: str, *, call: str, attempt: int,
    ) -> ScriptCall[CallNextAttemptAgain | CallNextAttemptGone | Literal["ALIVE"]]:
        """Ask again for a call whose worker is gone: the next attempt, in the lanes it still holds."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["call_next_attempt"], session_id, [
            turn_key, turn_key + ":budget", turn_key + ":trace", turn_key + ":events", session_key + "history",
            turn_key + ":guard", session_id, turn_id, call, attempt,
        ])

    def call_park(
        self, session_id: str, turn_id: str, *, owner: str, call: str, attempt: int, why: Literal["outside", "child"],
        token: str, timeout_ms: int, found: str, block: bool, changed: str,
    ) -> ScriptCall[CallParkLate | CallParkLost | Literal["PARKED", "SETTLED"]]:
        """A call's function has returned, and its result will come from outside: the call leaves its lanes and waits
        for it, and no worker does."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["call_park"], session_id, [
            turn_key, turn_key + ":budget", turn_key + ":trace", session_key + "history", turn_key + ":events",
            turn_key + ":guard", turn_key + ":sources", turn_key + ":blocked", turn_key + ":changes", session_id,
            turn_id, owner, call, attempt, why, token, timeout_ms, found, "1" if block else "0", changed,
        ])

    def call_progress(
        self, session_id: str, turn_id: str, *, owner: str, call: str, attempt: int, number: int, progress: str,
    ) -> ScriptCall[Literal["OK", "LOST"]]:
        """Publish how far a call is that runs, or waits for a server's task."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["call_progress"], session_id, [
            turn_key, turn_key + ":trace", turn_key + ":events", owner, call, attempt, number, progress,
        ])

    def call_settle(
        self, session_id: str, turn_id: str, *, owner: str, call: str, attempt: int, status: TraceStatus, message: str,
        detail: str, latency_ms: int, retryable: bool, found: str, block: bool, notice: str, changed: str,
        still_runs: bool,
    ) -> ScriptCall[CallSettleLate | CallSettleLost | Literal["SETTLED"]]:
        """Record how a call ended: the move of its status and the recording of its result are one step, so no result
        enters a turn whose call has timed out or whose gate is closed."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["call_settle"], session_id, [
            turn_key, turn_key + ":budget", turn_key + ":trace", session_key + "history", turn_key + ":events",
            turn_key + ":guard", turn_key + ":sources", turn_key + ":blocked", session_key + "notices",
            turn_key + ":changes", session_id, turn_id, owner, call, attempt, status, message, detail, latency_ms,
            "1" if retryable else "0", found, "1" if block else "0", notice, changed, "1" if still_runs else "0",
        ])

    def call_start(
        self, session_id: str, turn_id: str, *, owner: str, call: str, attempt: int, lease_ms: int,
    ) -> ScriptCall[Literal["OK", "CLOSED", "LOST"]]:
        """The last look before the function of a call that changes something is called, once its intent is stored: it
        still is wanted, and still holds its lanes."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["call_start"], session_id, [
            turn_key, turn_key + ":trace", self.keys.lane_leases, session_id, turn_id, owner, call, attempt, lease_ms,
        ])

    def call_token(
        self, session_id: str, turn_id: str, *, owner: str, call: str, attempt: int, token: str,
    ) -> ScriptCall[CallTokenGiven | Literal["LOST"]]:
        """Note the token that a running call gives away, so that no other one is taken for it."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["call_token"], session_id, [
            turn_key + ":trace", owner, call, attempt, token,
        ])

    def call_unstarted(
        self, session_id: str, turn_id: str, *, call: str, attempt: int, owner: str,
    ) -> ScriptCall[CallUnstartedGone | Literal["UNSTARTED", "STARTED"]]:
        """Whether an attempt never started, though its intent is in SQL and its worker is gone: a statement of its
        worker's reached SQL after that had given it up."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["call_unstarted"], session_id, [
            turn_key + ":trace", session_id, turn_id, call, attempt, owner,
        ])

    def capacity_keep(
        self, *, size: int, share: int, own: str, caps: str, cap_ms: int, most: int, keep_ms: int,
    ) -> ScriptCall[CapacityKeepKept]:
        """Say how large the capacity is and what a tenant's share of it is, take turns out of it that are not live
        (they were lost, not ended), and admit turns that wait."""
        return ScriptCall(self, self.loaded["capacity_keep"], "", [
            self.keys.room, size, share, own, caps, cap_ms, most, keep_ms,
        ])

    def finalize_ahead(
        self, session_id: str, turn_id: str, *, fence: int, step: str, ahead: str, past: str, retry_ms: int,
        failure: str, uncounted: int, owner: str, lease_ms: int,
    ) -> ScriptCall[FinalizeAheadGo | Literal["NEXT", "WAIT", "LOST"]]:
        """Steps behind the chain's own go ahead of it: it is to be tried again, and they do not need it."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["finalize_ahead"], session_id, [
            turn_key, session_id, turn_id, fence, step, ahead, past, retry_ms, failure, uncounted, owner, lease_ms,
        ])

    def finalize_beat(
        self, session_id: str, turn_id: str, *, fence: int, lease_ms: int,
    ) -> ScriptCall[Literal["OK", "LOST"]]:
        """Renew the lease of a finalizer step."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["finalize_beat"], session_id, [turn_key, fence, lease_ms])

    def finalize_claim(
        self, session_id: str, turn_id: str, *, owner: str, step: str, lease_ms: int, brains: Sequence[str],
        left_ms: int,
    ) -> ScriptCall[FinalizeClaimGo | FinalizeClaimDrop]:
        """Take the finalizer step that is next, if it is the one the doorbell names and nobody holds it."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["finalize_claim"], session_id, [
            turn_key, session_id, turn_id, owner, step, lease_ms, " ".join(brains), left_ms,
        ])

    def finalize_finish(
        self, session_id: str, turn_id: str, *, fence: int, step: str, keep_ms: int,
    ) -> ScriptCall[Literal["FINISHED", "LOST"]]:
        """The last finalizer step is done (or given up): the chain is finished, and the turn's keys get their
        lifetime."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["finalize_finish"], session_id, [
            turn_key, turn_key + ":spec", turn_key + ":budget", turn_key + ":trace", turn_key + ":guard",
            turn_key + ":events", turn_key + ":sources", turn_key + ":blocked", turn_key + ":spends",
            turn_key + ":result", turn_key + ":mailbox", turn_key + ":receipts", turn_key + ":changes",
            turn_key + ":history", fence, step, keep_ms,
        ])

    def finalize_retry(
        self, session_id: str, turn_id: str, *, fence: int, retry_ms: int, failure: str,
    ) -> ScriptCall[Literal["WAIT", "LOST"]]:
        """A finalizer step failed and is to be tried again after `retry_ms`; the sweeper rings then."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["finalize_retry"], session_id, [
            turn_key, session_id, turn_id, fence, retry_ms, failure,
        ])

    def finalize_send(
        self, session_id: str, turn_id: str, *, fence: int, step: str, next_step: str, owner: str, lease_ms: int,
        body: str, data: str,
    ) -> ScriptCall[FinalizeSendGo | Literal["NEXT", "LOST"]]:
        """The step that sends the result is done: the result goes out, if it has not yet, and the chain goes on as by
        finalize_settle."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["finalize_send"], session_id, [
            turn_key, turn_key + ":result", turn_key + ":events", session_id, turn_id, fence, step, next_step, owner,
            lease_ms, body, data,
        ])

    def finalize_settle(
        self, session_id: str, turn_id: str, *, fence: int, step: str, next_step: str, owner: str, lease_ms: int,
    ) -> ScriptCall[FinalizeSettleGo | Literal["NEXT", "LOST"]]:
        """A finalizer step is done (or given up), and the chain goes on with `next_step`."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["finalize_settle"], session_id, [
            turn_key, session_id, turn_id, fence, step, next_step, owner, lease_ms,
        ])

    def flag_add(
        self, session_id: str, *, flag: str, timeout_ms: int, policy: HoldPolicy, reason: str, most: int, keep_ms: int,
    ) -> ScriptCall[Literal["ADDED", "ALREADY", "FULL"]]:
        """Add a readiness flag to a session's queue: its next turn that has none takes the oldest."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        return ScriptCall(self, self.loaded["flag_add"], session_id, [
            session_key + "session", session_key + "flags", session_key + "readiness", flag, timeout_ms, policy, reason,
            most, keep_ms,
        ])

    def flag_release(self, session_id: str, *, flag: str) -> ScriptCall[FlagReleaseTaken | Literal["READY", "GONE"]]:
        """Say that a readiness flag is ready."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        return ScriptCall(self, self.loaded["flag_release"], session_id, [session_key + "flags", flag])

    def gate_shut(self, session_id: str, turn_id: str, *, by: str) -> ScriptCall[Literal["SHUT", "ALREADY", "GONE"]]:
        """Shut a turn's write gate: no result enters it any more, though it has not ended yet."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["gate_shut"], session_id, [turn_key, by])

    def history_compact(
        self, session_id: str, turn_id: str, *, owner: str, fence: int, expect: int, drop: int, input: int, output: int,
        cache_read: int, cache_creation: int, cost: float | None, spend: str, data: str, mark: str,
        forget: Sequence[str], why: str, items: Sequence[str],
    ) -> ScriptCall[Literal["COMPACTED", "CHANGED", "LOST"]]:
        """Replace the oldest messages of the history by a summary: `drop` of them go, `items` (the summary, and
        messages that must stay) come in front."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["history_compact"], session_id, [
            turn_key, session_key + "session", turn_key + ":budget", session_key + "history", turn_key + ":events",
            turn_key + ":spends", turn_key + ":guard", session_id, turn_id, owner, fence, expect, drop, input, output,
            cache_read, cache_creation, "" if cost is None else repr(cost), spend, data, mark, " ".join(forget), why,
            *items,
        ])

    def hold_place(
        self, session_id: str, turn_id: str, *, hold: str, timeout_ms: int, policy: HoldPolicy, reason: str,
        hold_kind: Literal["hold", "readiness"],
    ) -> ScriptCall[HoldPlaceEnded | Literal["HELD", "ALREADY", "GONE"]]:
        """Place a hold on a turn: from now on no call that changes something starts in it."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["hold_place"], session_id, [
            turn_key, turn_key + ":events", session_id, turn_id, hold, timeout_ms, policy, reason, hold_kind,
        ])

    def hold_release(
        self, session_id: str, turn_id: str, *, hold: str,
    ) -> ScriptCall[Literal["RELEASED", "ABSENT", "GONE"]]:
        """Release a hold of a turn."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["hold_release"], session_id, [
            turn_key, turn_key + ":budget", turn_key + ":trace", session_key + "history", turn_key + ":events",
            turn_key + ":guard", session_id, turn_id, hold,
        ])

    def hooks_done(
        self, session_id: str, turn_id: str, *, owner: str, fence: int, calls: Sequence[str],
    ) -> ScriptCall[Literal["DONE", "LOST"]]:
        """The brain's `on_post_tool_use` was called for these calls, which no worker had ended."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["hooks_done"], session_id, [
            turn_key, turn_key + ":trace", owner, fence, " ".join(calls),
        ])

    def index_drop(self, session_id: str, turn_id: str) -> ScriptCall[Literal["DROPPED", "KNOWN"]]:
        """A turn that Redis does not know, and for whose end nobody waits, is looked at no more."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["index_drop"], session_id, [turn_key, session_id, turn_id])

    def index_hasten(self, *, after_ms: int, members: Sequence[str]) -> ScriptCall[Literal["OK"]]:
        """Have turns looked at in `after_ms` at the latest."""
        return ScriptCall(self, self.loaded["index_hasten"], "", [self.keys.index, after_ms, *members])

    def index_take(self, *, most: int, hold_ms: int) -> ScriptCall[IndexTakeDue]:
        """Take up to `most` turns that are due to be looked at, pushed back by `hold_ms` so that sweepers share the
        work."""
        return ScriptCall(self, self.loaded["index_take"], "", [self.keys.index, self.keys.swept, most, hold_ms])

    def judge_pass(
        self, session_id: str, turn_id: str, *, rung: str, judge: str, brains: Sequence[str], hold_ms: int,
    ) -> ScriptCall[Literal["PASSED", "ALREADY", "UNSERVED", "MINE"]]:
        """A judge's doorbell came to a worker that may not judge its turn (lib/refusal): ring in the queue of a build
        that may, once in `hold_ms`."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["judge_pass"], session_id, [
            rung, turn_key, session_id, turn_id, judge, " ".join(brains), hold_ms,
        ])

    def judge_ring(
        self, session_id: str, turn_id: str, *, rung: str, judge: str, hold_ms: int,
    ) -> ScriptCall[Literal["RUNG", "ALREADY", "FULL"]]:
        """Ring for a judge of an ended turn, not more often than every `hold_ms`: whether it is still wanted, its row
        in SQL says."""
        return ScriptCall(self, self.loaded["judge_ring"], session_id, [rung, session_id, turn_id, judge, hold_ms])

    def lane_beat(self, *, holder: str, lease_ms: int) -> ScriptCall[Literal["OK", "LOST"]]:
        """Keep the lanes of a call whose function still runs, also after its call was settled."""
        return ScriptCall(self, self.loaded["lane_beat"], "", [self.keys.lane_leases, holder, lease_ms])

    def lane_check(
        self, session_id: str, turn_id: str, *, call: str, mark: str, lease_ms: int,
    ) -> ScriptCall[Literal["KEPT", "LEFT"]]:
        """The lease of a call's lanes has lapsed: they are kept for a call that is queued or runs, and left by one
        that is over, unless its lease was renewed since a sweeper found it with this `mark`: an abandoned function of
        it may be beating."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["lane_check"], session_id, [
            turn_key, turn_key + ":budget", turn_key + ":trace", session_key + "history", turn_key + ":events",
            turn_key + ":guard", session_id, turn_id, call, mark, lease_ms,
        ])

    def lane_lapsed(self, *, most: int, hold_ms: int, longest_lease_ms: int) -> ScriptCall[LaneLapsedLapsed]:
        """Take up to `most` holders whose lease has lapsed, to ask their calls whether the lanes are still needed."""
        return ScriptCall(self, self.loaded["lane_lapsed"], "", [
            self.keys.lane_leases, most, hold_ms, longest_lease_ms,
        ])

    def leases_lapse(
        self, session_id: str, turn_id: str, *, process: str, absent_at: int, lease_ms: int, beat_ms: int,
    ) -> ScriptCall[LeasesLapseLapsed | Literal["NONE"]]:
        """End what a process that is gone holds of one turn now: its lease of the turn, of calls, of the finalizer's
        step."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["leases_lapse"], session_id, [
            turn_key, turn_key + ":trace", self.keys.lane_leases, session_id, turn_id, process, absent_at, lease_ms,
            beat_ms,
        ])

    def mailbox_put(
        self, session_id: str, turn_id: str, *, message_id: str, item: str, most: int, most_bytes: int,
        cell_tenant: str,
    ) -> ScriptCall[MailboxPutFull | MailboxPutAlready | MailboxPutSealed | MailboxPutMoved | Literal["ACCEPTED", "GONE", "MOVING"]]:
        """Put input into a turn's mailbox, once for each client_message_id."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["mailbox_put"], session_id, [
            turn_key, turn_key + ":events", turn_key + ":mailbox", turn_key + ":receipts", self.keys.moved, message_id,
            item, most, most_bytes, cell_tenant,
        ])

    def metrics_flush(
        self, *, flushed: str, number: int, dropped: str, keep_ms: int, remember_ms: int, most: int,
        deltas: Sequence[str],
    ) -> ScriptCall[Literal["ADDED", "ALREADY"]]:
        """Add what a process has counted to what all have."""
        return ScriptCall(self, self.loaded["metrics_flush"], "", [
            flushed, self.keys.metrics, number, dropped, keep_ms, remember_ms, most, *deltas,
        ])

    def money_grant(
        self, *, counter: str, granted: float | None, spent: float | None, is_full: bool, returned: float | None,
        keep_ms: int,
    ) -> ScriptCall[Literal["GRANTED"]]:
        """Let a window's counter have what SQL has granted it in all."""
        return ScriptCall(self, self.loaded["money_grant"], "", [
            counter, "" if granted is None else repr(granted), "" if spent is None else repr(spent),
            "1" if is_full else "0", "" if returned is None else repr(returned), keep_ms,
        ])

    def money_resume(self, *, parked_line: str, prefix: str, most: int) -> ScriptCall[MoneyResumeOk]:
        """Have the turns that are parked in a line looked at now, in the order of the line: a budget was raised."""
        return ScriptCall(self, self.loaded["money_resume"], "", [parked_line, self.keys.index, prefix, most])

    def money_return(self, *, counter: str, least: float | None) -> ScriptCall[MoneyReturnReturned | Literal["BUSY"]]:
        """Take what a window's counter has left out of it, because another cell may want it."""
        return ScriptCall(self, self.loaded["money_return"], "", [counter, "" if least is None else repr(least)])

    def money_settle(self, *, ticket: str, usd: float | None) -> ScriptCall[Literal["SETTLED", "ALREADY"]]:
        """Settle what money_take took: the call has cost `usd`."""
        return ScriptCall(self, self.loaded["money_settle"], "", [ticket, "" if usd is None else repr(usd)])

    def money_take(self, *, ticket: str, money: str, keep_ms: int) -> ScriptCall[MoneyTakeMoney | Literal["GO"]]:
        """Take the worst case of a model call after its turn's end (a judge, an extraction) out of budgets: it is
        counted as spent at once, for nobody would tell of a worker that dies over it."""
        return ScriptCall(self, self.loaded["money_take"], "", [ticket, money, keep_ms])

    def moved_word(self, *, tenant: str, before: str, after: str) -> ScriptCall[MovedWordChanged | Literal["DONE"]]:
        """Write what scripts read of a tenant that is not this cell's any more, or take it away again (`after`
        empty), if it is still what it was (`before`, empty for nothing)."""
        return ScriptCall(self, self.loaded["moved_word"], "", [self.keys.moved, tenant, before, after])

    def opening_skip(self, session_id: str, turn_id: str) -> ScriptCall[Literal["SKIPPED", "ALREADY", "EARLY"]]:
        """Go on without what memory and the context pack have not brought in time: their calls time out, and a result
        that comes later is late like any other."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["opening_skip"], session_id, [
            turn_key, turn_key + ":budget", turn_key + ":trace", session_key + "history", turn_key + ":events",
            turn_key + ":guard", session_id, turn_id,
        ])

    def outside_complete(
        self, session_id: str, turn_id: str, *, call: str, token: str, known: bool, status: TraceStatus, message: str,
        detail: str, retryable: bool, found: str, notice: str, spent: str, outcome: str,
    ) -> ScriptCall[OutsideCompleteLate | Literal["SETTLED", "EARLY", "USED", "BAD", "GONE"]]:
        """The result of a parked call comes from outside, once."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["outside_complete"], session_id, [
            turn_key, turn_key + ":budget", turn_key + ":trace", session_key + "history", turn_key + ":events",
            turn_key + ":guard", turn_key + ":sources", turn_key + ":blocked", session_key + "notices",
            turn_key + ":spends", session_id, turn_id, call, token, "1" if known else "0", status, message, detail,
            "1" if retryable else "0", found, notice, spent, outcome,
        ])

    def presence_forget(self, *, process: str, absent_at: int) -> ScriptCall[Literal["OK"]]:
        """A process that was found gone is watched no more, unless it was seen since."""
        return ScriptCall(self, self.loaded["presence_forget"], "", [self.keys.presence, process, absent_at])

    def presence_join(self, *, channels: str, process: str, keep_ms: int) -> ScriptCall[Literal["WATCHED", "DEAF"]]:
        """Note that a process listens on its channel, so that it is known to be gone when it no longer does."""
        return ScriptCall(self, self.loaded["presence_join"], "", [self.keys.presence, channels, process, keep_ms])

    def presence_look(
        self, *, channels: str, apart_ms: int, forget_ms: int,
    ) -> ScriptCall[PresenceLookLooked | Literal["EARLY"]]:
        """Find the processes that are gone: they listened since this Redis began, and did not at two looks at least
        `apart_ms` apart."""
        return ScriptCall(self, self.loaded["presence_look"], "", [self.keys.presence, channels, apart_ms, forget_ms])

    def quarantine_wait(
        self, session_id: str, turn_id: str, *, fence: int, after_ms: int,
    ) -> ScriptCall[Literal["WAITS", "GONE"]]:
        """A turn that may be what kills its workers waits for a place in quarantine, and nobody owns it."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["quarantine_wait"], session_id, [
            turn_key, turn_key + ":budget", session_id, turn_id, fence, after_ms,
        ])

    def rate_leave(
        self, *, line: str, order: str, due: str, rule: str, tenants: str, ticket: str,
    ) -> ScriptCall[Literal["LEFT", "NONE"]]:
        """Leave the queue for a model's places: whose turn is over, or was answered by another model."""
        return ScriptCall(self, self.loaded["rate_leave"], "", [line, order, due, rule, tenants, ticket])

    def rate_report(
        self, *, places: str, rule: str, place: str, used: int, estimated: int, counted: int, is_all: bool,
    ) -> ScriptCall[Literal["OK", "GONE"]]:
        """What a stream that goes on has reported of its usage: `used` tokens at least, with what its reply may yet
        have."""
        return ScriptCall(self, self.loaded["rate_report"], "", [
            places, rule, place, used, estimated, counted, "1" if is_all else "0",
        ])

    def rate_settle(
        self, *, places: str, rule: str, place: str, model: str, mark: str, used: int | None, estimated: int | None,
        counted: int | None, answered_ms: int | None, window_ms: int, requests: int | None, tokens: int | None,
        stop_ms: int, probes: bool,
    ) -> ScriptCall[Literal["OK", "LEARNED"]]:
        """What came of a request: how many tokens it really used, `answered_ms` ago its answer began (its place
        counts a window from there), what of them it `counted` for those that were `estimated`, and the service's word
        on its limits: `requests` and `tokens` a minute, and to wait `stop_ms`; `probes`: for longer than that, so one
        request tries it first."""
        return ScriptCall(self, self.loaded["rate_settle"], "", [
            places, rule, self.keys.limited, place, model, mark, "" if used is None else used,
            "" if estimated is None else estimated, "" if counted is None else counted,
            "" if answered_ms is None else answered_ms, window_ms, "" if requests is None else requests,
            "" if tokens is None else tokens, stop_ms, "1" if probes else "0",
        ])

    def rate_take(
        self, *, places: str, line: str, order: str, due: str, rule: str, tenants: str, by: str, model: str, place: str,
        ticket: str, rank: int, tokens: int, estimated: int, requests_most: int | None, tokens_most: int | None,
        window_ms: int, slack_ms: int, most_wait_ms: int, shared: bool,
    ) -> ScriptCall[RateTakeWait | RateTakeLate | Literal["GO"]]:
        """Take a place among the requests of one window to one model, or wait in the queue for one."""
        return ScriptCall(self, self.loaded["rate_take"], "", [
            places, line, order, due, rule, tenants, by, self.keys.limited, model, place, ticket, rank, tokens,
            estimated, "" if requests_most is None else requests_most, "" if tokens_most is None else tokens_most,
            window_ms, slack_ms, most_wait_ms, "1" if shared else "0",
        ])

    def request_tried(
        self, *, tries: str, key: str, number: int, state: Literal["refused", "cut", "sent", "over"],
    ) -> ScriptCall[Literal["NOTED", "NONE"]]:
        """How a try ended: it was refused, cut before its client had all, or sent whole; `over`: its client is not to
        come again."""
        return ScriptCall(self, self.loaded["request_tried"], "", [tries, key, number, state])

    def request_try(
        self, *, tries: str, key: str, number: int, state: Literal["open", "refused"], older: str, keep_ms: int,
        most: int,
    ) -> ScriptCall[RequestTryKey]:
        """Which request a try is of, where its client says only which try it is (`number`, from 0), and its content
        alone tells it from others."""
        return ScriptCall(self, self.loaded["request_try"], "", [tries, key, number, state, older, keep_ms, most])

    def result_amend(
        self, session_id: str, turn_id: str, *, known: str, body: str,
    ) -> ScriptCall[Literal["AMENDED", "OTHER"]]:
        """A result that is out says something else: what was given up after it went out, or done after all."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["result_amend"], session_id, [turn_key + ":result", known, body])

    def result_publish(
        self, session_id: str, turn_id: str, *, body: str, data: str,
    ) -> ScriptCall[Literal["PUBLISHED", "ALREADY", "OPEN"]]:
        """The result goes out, once, though no step of the chain sends it."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["result_publish"], session_id, [
            turn_key, turn_key + ":result", turn_key + ":events", body, data,
        ])

    def session_pause(
        self, session_id: str, *, keep_session_ms: int, why: str,
    ) -> ScriptCall[Literal["PAUSED", "ALREADY"]]:
        """No further turn of the session begins, until it is resumed."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        return ScriptCall(self, self.loaded["session_pause"], session_id, [
            session_key + "session", session_key + "waiting", keep_session_ms, why,
        ])

    def session_resume(self, session_id: str) -> ScriptCall[SessionResumeResumed | Literal["ALREADY"]]:
        """Let the session's turns begin again: the first that waits does, when none is live and there is capacity,
        which it queues for else."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        return ScriptCall(self, self.loaded["session_resume"], session_id, [
            session_key + "session", session_key + "waiting", session_id,
        ])

    def share_look(
        self, *, places: str, line: str, rule: str, by: str, look: str, asker: str, keep_ms: int,
        requests_most: int | None, tokens_most: int | None,
    ) -> ScriptCall[ShareLookSeen | Literal["OTHER", "FREE"]]:
        """What a cell has and uses of a model's limit that it shares with other cells, in parts of WHOLE: the share
        that home gave it, what counts within the window, and whether requests wait."""
        return ScriptCall(self, self.loaded["share_look"], "", [
            places, line, rule, by, look, asker, keep_ms, "" if requests_most is None else requests_most,
            "" if tokens_most is None else tokens_most,
        ])

    def share_put(self, *, rule: str, mark: int, share: int, for_ms: int) -> ScriptCall[Literal["PUT", "OLD"]]:
        """Put the share of a model's limit that home has given this cell, in parts of WHOLE, for `for_ms` from the
        look with this `mark` on, which was made before home was asked."""
        return ScriptCall(self, self.loaded["share_put"], "", [rule, mark, share, for_ms])

    def step_begin(
        self, session_id: str, turn_id: str, *, owner: str, fence: int, asked: str, estimate: int, tokens: int,
        estimate_usd: float | None, shown: Sequence[str], lost: str, under_way: str, drain: int, ready: str, full: int,
        money: str, items: Sequence[str],
    ) -> ScriptCall[StepBeginGo | StepBeginSpent | StepBeginMoney | Literal["LOST"]]:
        """Claim the next step and start an attempt at it."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["step_begin"], session_id, [
            turn_key, turn_key + ":budget", session_key + "history", turn_key + ":events", turn_key + ":spends",
            turn_key + ":mailbox", turn_key + ":receipts", owner, fence, asked, estimate, tokens,
            "" if estimate_usd is None else repr(estimate_usd), " ".join(shown), lost, under_way, drain, ready, full,
            money, *items,
        ])

    def step_commit(
        self, session_id: str, turn_id: str, *, owner: str, fence: int, step: int, item: str, calls: str,
        block: Sequence[str], tail: str, problem: str, input: int, output: int, cache_read: int, cache_creation: int,
        cost: float | None, spend: str, lost: str, notes: Sequence[str],
    ) -> ScriptCall[StepCommitBudget | Literal["COMMITTED", "LOST"]]:
        """Commit a reply that asks for calls: the reply enters the history, the calls their trace, the first wave
        opens."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["step_commit"], session_id, [
            turn_key, session_key + "session", turn_key + ":budget", turn_key + ":trace", session_key + "history",
            turn_key + ":events", turn_key + ":guard", turn_key + ":blocked", turn_key + ":spends", session_id, turn_id,
            owner, fence, step, item, calls, " ".join(block), tail, problem, input, output, cache_read, cache_creation,
            "" if cost is None else repr(cost), spend, lost, *notes,
        ])

    def step_delta(
        self, session_id: str, turn_id: str, *, owner: str, fence: int, step: int, attempt: int, part: str, kind: str,
        text: str, under_way: str,
    ) -> ScriptCall[Literal["OK", "LOST"]]:
        """Tell readers a part of the reply that is being written, or of what was thought before it (`kind`)."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["step_delta"], session_id, [
            turn_key, turn_key + ":events", owner, fence, step, attempt, part, kind, text, under_way,
        ])

    def step_retry(
        self, session_id: str, turn_id: str, *, owner: str, fence: int, step: int, attempt: int, part: str, kind: str,
        wait_ms: int, model: str,
    ) -> ScriptCall[Literal["OK", "LOST"]]:
        """Tell readers that the model could not be had, and is asked again after a wait: `kind` is the provider's
        word for what went wrong, `model` who is asked then, where that is one of several."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["step_retry"], session_id, [
            turn_key, turn_key + ":events", owner, fence, step, attempt, part, kind, wait_ms, model,
        ])

    def stop_drop(self, *, field: str) -> ScriptCall[Literal["LIFTED", "ABSENT"]]:
        """What operators had stopped goes on."""
        return ScriptCall(self, self.loaded["stop_drop"], "", [self.keys.stopped, self.keys.room, field])

    def stop_put(
        self, *, field: str, mode: Literal["pause", "forbid"], text: str, remaining_ms: int | None, keep_ms: int,
    ) -> ScriptCall[Literal["STOPPED"]]:
        """Operators stop something by name, or say so again: SQL knows it."""
        return ScriptCall(self, self.loaded["stop_put"], "", [
            self.keys.stopped, self.keys.room, field, mode, text, "" if remaining_ms is None else remaining_ms, keep_ms,
        ])

    def tenant_hide(
        self, session_id: str, *, session_parts: Sequence[str], turn_parts: Sequence[str],
    ) -> ScriptCall[TenantHideBusy | Literal["HIDDEN"]]:
        """Put a session of a tenant that is about to move where no other script finds it: its keys, and those of its
        turns that are parked or wait, are called `moving:` and their name from then on."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        return ScriptCall(self, self.loaded["tenant_hide"], session_id, [
            session_key + "session", session_key + "waiting", self.keys.turns_base(session_id), " ".join(session_parts),
            " ".join(turn_parts),
        ])

    def tenant_show(
        self, session_id: str, *, awaits: Sequence[str], hidden: Sequence[str],
    ) -> ScriptCall[Literal["SHOWN"]]:
        """Keys of a session that were hidden have their names again: in the cell that its tenant moved to, or, where
        the move was undone, in the one that it stayed in."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        return ScriptCall(self, self.loaded["tenant_show"], session_id, [
            session_key + "session", session_id, self.keys.turns_base(session_id), " ".join(awaits), *hidden,
        ])

    def turn_beat(
        self, session_id: str, turn_id: str, *, owner: str, fence: int, lease_ms: int, under_way: str,
    ) -> ScriptCall[Literal["OK", "CANCEL", "LOST"]]:
        """Renew the lease of a turn."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_beat"], session_id, [turn_key, owner, fence, lease_ms, under_way])

    def turn_begin(
        self, session_id: str, turn_id: str, *, owner: str, fence: int, prompt_hash: str, earlier: int,
        items: Sequence[str],
    ) -> ScriptCall[Literal["BEGUN", "ALREADY", "LOST"]]:
        """Put the user's message (the last item) into the session's history, once a turn, and note its place, counted
        from the session's first message on: what is trimmed away in front is counted in `trimmed`."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_begin"], session_id, [
            turn_key, session_key + "history", session_key + "session", owner, fence, prompt_hash, earlier, *items,
        ])

    def turn_blame(
        self, session_id: str, turn_id: str, *, process: str, how: str, among: int,
    ) -> ScriptCall[TurnBlameBlamed | Literal["GONE"]]:
        """A process in quarantine that worked on this turn has died, or stopped answering, with `among` turns in
        it."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_blame"], session_id, [
            turn_key, session_id, turn_id, process, how, among,
        ])

    def turn_cancel(
        self, session_id: str, turn_id: str, *, reason: str, first_step: str, queued_only: bool, keep_session_ms: int,
    ) -> ScriptCall[TurnCancelEnded | Literal["CANCELLED", "REQUESTED", "LIVE", "GONE"]]:
        """Ask for a turn to be cancelled."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_cancel"], session_id, [
            session_key + "session", session_key + "waiting", turn_key, session_id, turn_id, reason, first_step,
            self.keys.stops, "1" if queued_only else "0", keep_session_ms,
        ])

    def turn_claim(
        self, session_id: str, turn_id: str, *, owner: str, fence: int, lease_ms: int, grace_ms: int, most_lost: int,
        brains: Sequence[str], declared: str,
    ) -> ScriptCall[TurnClaimGo | TurnClaimDrop]:
        """Take the ownership of a turn for one advance."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_claim"], session_id, [
            turn_key, turn_key + ":budget", session_key + "history", session_key + "notices", turn_key + ":events",
            turn_key + ":spends", session_id, turn_id, owner, fence, lease_ms, grace_ms, most_lost, " ".join(brains),
            declared,
        ])

    def turn_end(
        self, session_id: str, turn_id: str, *, owner: str, fence: int, ending: Ending, stop_reason: StopReason,
        text: str, failure: str, item: str, marker: str, outcome: str, open_status: TraceStatus, open_text: str,
        first_step: str, tail: str, last: str, diff: str, n_changes: int, input: int, output: int, cache_read: int,
        cache_creation: int, cost: float | None, spend: str, lost: str, keep_session_ms: int,
    ) -> ScriptCall[TurnEndEnded | Literal["MORE", "CHANGED", "LOST"]]:
        """End a turn, once, by its owner: its mailbox is sealed, calls still open get their message, the answer
        enters the session's history, the write gate shuts, its capacity goes to the turn that is next for it, and the
        finalizer is rung."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_end"], session_id, [
            session_key + "session", session_key + "waiting", turn_key, turn_key + ":budget", turn_key + ":trace",
            session_key + "history", turn_key + ":events", turn_key + ":guard", session_key + "notices",
            turn_key + ":spends", turn_key + ":mailbox", turn_key + ":receipts", turn_key + ":changes",
            session_key + "flags", session_key + "readiness", self.keys.turns_base(session_id), session_id, turn_id,
            owner, fence, ending, stop_reason, text, failure, item, marker, outcome, open_status, open_text, first_step,
            tail, last, diff, n_changes, input, output, cache_read, cache_creation, "" if cost is None else repr(cost),
            spend, lost, keep_session_ms,
        ])

    def turn_messages(self, session_id: str, turn_id: str, *, most: int) -> ScriptCall[TurnMessagesSaid]:
        """The messages of a turn that has ended, as by turn_transcript."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_messages"], session_id, [
            turn_key, session_key + "session", session_key + "history", most,
        ])

    def turn_open(
        self, session_id: str, turn_id: str, *, owner: str, fence: int, calls: str, opening_ms: int,
    ) -> ScriptCall[Literal["OPENED", "ALREADY", "LOST"]]:
        """Open the wave a turn begins with, once: memory and the context pack, as the calls of step 0."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_open"], session_id, [
            turn_key, turn_key + ":budget", turn_key + ":trace", session_key + "history", turn_key + ":events",
            turn_key + ":guard", session_id, turn_id, owner, fence, calls, opening_ms,
        ])

    def turn_park(
        self, session_id: str, turn_id: str, *, parked_line: str, owner: str, fence: int, after_ms: int, name: str,
        lost: str,
    ) -> ScriptCall[Literal["PARKED", "LOST"]]:
        """Park a turn whose next model call a budget does not allow: nobody's thread waits with it, its capacity is
        another's, and its deadline does not run."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_park"], session_id, [
            parked_line, turn_key, turn_key + ":budget", turn_key + ":events", turn_key + ":spends", session_id,
            turn_id, owner, fence, after_ms, name, lost,
        ])

    def turn_release(
        self, session_id: str, turn_id: str, *, owner: str, fence: int,
    ) -> ScriptCall[Literal["RELEASED", "CLEARED", "GONE"]]:
        """Whoever owned a turn lives, and does not go on with it: our own trouble, not the turn's."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_release"], session_id, [turn_key, session_id, turn_id, owner, fence])

    def turn_submit(
        self, session_id: str, turn_id: str, *, spec_json: str, turn_kind: TurnKind, isolated: bool, brain: str,
        parent: str, mode: OnBusy, priority: Priority, readiness_word: str, first_step: str, timeout_ms: int,
        max_wait_ms: int | None, max_steps: int, max_tool_calls: int, max_reflections: int, max_context_tokens: int,
        max_total_tokens: int | None, max_cost_usd: float | None, max_children: int, lost_reason: str, kept: str,
        trace: str, cell_tenant: str, stop_fields: Sequence[str],
    ) -> ScriptCall[TurnSubmitQueued | TurnSubmitExists | TurnSubmitBusy | TurnSubmitMoved | TurnSubmitForbidden | TurnSubmitUnserved | Literal["ACTIVE", "MOVING"]]:
        """Make an accepted turn known to Redis: live if its session is idle and the fleet has capacity, else last in
        the session's queue; a session whose first turn finds no capacity waits in its tenant's queue."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_submit"], session_id, [
            session_key + "session", session_key + "waiting", turn_key, turn_key + ":spec", turn_key + ":budget",
            turn_key + ":events", session_key + "flags", session_key + "readiness", turn_key + ":mailbox",
            turn_key + ":receipts", self.keys.moved, self.keys.turns_base(session_id), session_id, turn_id, spec_json,
            turn_kind, "1" if isolated else "0", brain, parent, mode, priority, readiness_word, first_step,
            self.keys.stops, timeout_ms, "" if max_wait_ms is None else max_wait_ms, max_steps, max_tool_calls,
            max_reflections, max_context_tokens, "" if max_total_tokens is None else max_total_tokens,
            "" if max_cost_usd is None else repr(max_cost_usd), max_children, lost_reason, kept, trace, cell_tenant,
            *stop_fields,
        ])

    def turn_sweep(
        self, session_id: str, turn_id: str, *, rering_ms: int, failing_ms: int, unserved_ms: int, grace_ms: int,
        longest_lease_ms: int,
    ) -> ScriptCall[TurnSweepLook | Literal["ENDED", "GONE"]]:
        """Look at one turn, heal what a script alone can heal (bells that were lost are rung again), and say when it
        is looked at next: here, where nobody can change what that depends on."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_sweep"], session_id, [
            turn_key, turn_key + ":budget", turn_key + ":trace", session_id, turn_id, rering_ms, failing_ms,
            unserved_ms, grace_ms, longest_lease_ms,
        ])

    def turn_transcript(self, session_id: str, turn_id: str, *, most: int) -> ScriptCall[TurnTranscriptSaid]:
        """A turn's transcript: its messages, as far as its history still holds them, at most the `most` newest (some
        of other turns may be among them), its calls and its inputs' receipts."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_transcript"], session_id, [
            turn_key, session_key + "session", session_key + "history", turn_key + ":trace", turn_key + ":receipts",
            most,
        ])

    def turn_wait(
        self, session_id: str, turn_id: str, *, owner: str, fence: int, after_ms: int, wait_ms: int, why: str,
        queue_position: str, lost: str, stop: str,
    ) -> ScriptCall[Literal["WAITS", "LOST"]]:
        """Let a turn go that waits for its place among a model's requests: nobody's thread waits with it."""
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_wait"], session_id, [
            turn_key, turn_key + ":budget", turn_key + ":events", turn_key + ":spends", session_id, turn_id, owner,
            fence, after_ms, wait_ms, why, queue_position, lost, stop,
        ])

    def turn_waited(
        self, session_id: str, turn_id: str, *, text: str, first_step: str, keep_session_ms: int,
    ) -> ScriptCall[Literal["ENDED", "NONE"]]:
        """End a turn that has waited for longer than it may, and has not begun."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["turn_waited"], session_id, [
            session_key + "session", session_key + "waiting", turn_key, session_id, turn_id, text, first_step,
            keep_session_ms,
        ])

    def waits_expire(
        self, session_id: str, turn_id: str, *, cancels: bool,
    ) -> ScriptCall[WaitsExpireCancel | Literal["EXPIRED", "NONE"]]:
        """Let everything end that a turn has waited for too long: approvals are refused, outside results time out,
        holds follow their policy, and calls go on that a stop of operators' held, once it is lifted."""
        session_key = f"{self.keys.prefix}{{{session_id}}}:"
        turn_key = f"{self.keys.prefix}{{{session_id}}}:t:{turn_id}"
        return ScriptCall(self, self.loaded["waits_expire"], session_id, [
            turn_key, turn_key + ":budget", turn_key + ":trace", session_key + "history", turn_key + ":events",
            turn_key + ":guard", session_id, turn_id, "1" if cancels else "0",
        ])
