"""JudgeRunner: answers one doorbell of `brainq.judges`, with the case that the judge reads."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from brainq.brain.brains import ByBrain
from brainq.contracts.build import FORMATS_READ
from brainq.contracts.evaluation import Judge, JudgeCase, Judgement
from brainq.contracts.memory import RecordedTurn
from brainq.contracts.message import Message
from brainq.contracts.model import Price, Spend, TokenUsage, unknown_price
from brainq.contracts.status import WorkFailure, WorkOutcome
from brainq.contracts.stop import Stop, stop_of_turn
from brainq.finalize.finalizer import MAX_TRIES, retry_after_s
from brainq.leases import LeaseRenewer
from brainq.memory.judges import judges_named, unknown_judge
from brainq.memory.words import cut
from brainq.models.asking.bill import Allowance
from brainq.models.asking.deferred import StopDeferred
from brainq.models.auxiliary import AuxiliaryModel
from brainq.observe.logs import logger
from brainq.observe.spans import judge_span
from brainq.observe.tracing import in_span
from brainq.ports.people import StopsInForce
from brainq.ports.redis_turns import JudgeBells
from brainq.ports.sql import JudgementRows
from brainq.processes.threads import call_within
from brainq.text.failures import failure_words

log = logger("brainq.finalize")
MOST_RESULT_CHARS = 2_000  # of one tool result
MOST_MESSAGE_CHARS = 8_000  # of any other message, of the question, and of the answer
MOST_TRANSCRIPT_CHARS = 40_000
MOST_FACTS = 50
MOST_FACT_CHARS = 1_000
_NOTE_KEYS = ("text", "excerpt")
JUDGE_LIMIT_S = 60.0  # one judge, one turn; a model is given less, so that its fallback still has time
MOST_ERROR_CHARS = 2_000
PAUSED_RETRY_S = 30.0  # so long after a stop was lifted, at most, a judgement that it paused goes on
UNSERVED_AGAIN_S = 30.0  # until a worker of the build that is to judge a turn is looked for again
OTHER_BUILD = "it waits for the build whose brain the turn is pinned to"
NO_CONTENT = (
    "the turn's content is gone: Redis has let it go and SQL keeps none of it (redact_logs); judge sooner, or keep "
    "turns longer in Redis (BRAINQ_KEEP_TURN_S)"
)


def judge_case(turn: RecordedTurn) -> JudgeCase:
    """The case of a turn: bounded, whatever the turn was."""
    return JudgeCase(
        turn_id=turn.turn_id,
        session_id=turn.session_id,
        question=cut(turn.user_message, MOST_MESSAGE_CHARS),
        answer=cut(turn.text, MOST_MESSAGE_CHARS),
        transcript=transcript_of(turn.messages),
        relevant_facts=relevant_facts(turn),
        system_prompt=cut(turn.system_prompt, MOST_MESSAGE_CHARS),
        history=transcript_of(turn.history),
    )


def transcript_of(messages: Iterable[Message]) -> str:
    """One `[role] text` line a message; the middle is left out where all is too much.

    Line breaks become spaces, so that no text can begin a line of its own and speak in another role.
    """
    lines = [line for message in messages if (line := _transcript_line(message))]
    if sum(map(len, lines)) + len(lines) <= MOST_TRANSCRIPT_CHARS:
        return "\n".join(lines)
    # The question says what it was about, the end what the answer rests on.
    first, rest = lines[0], lines[1:]
    remaining = MOST_TRANSCRIPT_CHARS - len(first) - 50
    kept: list[str] = []
    for line in reversed(rest):
        remaining -= len(line) + 1
        if remaining < 0:
            break
        kept.append(line)
    left_out = len(rest) - len(kept)
    return "\n".join([first, f"({left_out} messages are left out here)", *reversed(kept)])


def _transcript_line(message: Message) -> str:
    max_chars = MOST_RESULT_CHARS if message.role == "tool" else MOST_MESSAGE_CHARS
    text = cut(" ".join(message.content.split()), max_chars)
    if message.calls:
        text = f"{text} (calls {', '.join(call.name for call in message.calls)})".strip()
    return f"[{message.role}] {text}" if text else ""


def relevant_facts(turn: RecordedTurn) -> tuple[str, ...]:
    """The facts the answer should rest on: those the context pack names, and what its citations quote.

    The pack's `relevant_facts` (texts, or objects with a `text`); where it has none, the `text` or `excerpt` of its
    `notes`. A pack that is not such JSON has none.
    """
    pack = _read_pack(turn.context_pack_json)
    facts = list(_row_texts(pack.get("relevant_facts"), ("text",))) or list(_row_texts(pack.get("notes"), _NOTE_KEYS))
    facts += [citation.quote for citation in turn.citations]
    tidy = (cut(" ".join(fact.split()), MOST_FACT_CHARS) for fact in facts)
    return tuple(dict.fromkeys(fact for fact in tidy if fact))[:MOST_FACTS]


def _read_pack(text: str | None) -> dict[str, Any]:
    try:
        found: Any = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _row_texts(rows: Any, keys: tuple[str, ...]) -> Iterator[str]:
    for row in rows if isinstance(rows, list) else []:
        text: Any = next((row[key] for key in keys if row.get(key)), None) if isinstance(row, dict) else row
        if isinstance(text, str):
            yield text


@dataclass(frozen=True, slots=True)
class JudgeRuntime:
    """All that differs between the judging of one brain's turns and of another's.

    own         the brain's judges
    auxiliary   the model of the shipped judges; None: they go by rules
    price       of what a model that judges uses
    name        of the brain
    redact      reasons and errors may quote the turn: SQL keeps the score and the kind of error only
    """

    own: Sequence[Judge]
    auxiliary: AuxiliaryModel | None
    redact: bool = False
    price: Price = unknown_price
    name: str = ""


@dataclass(eq=False, kw_only=True)
class JudgeRunner:
    """Runs one judge on one turn. Holds no state of its own: any process may run any judge of any turn.

    brains      what the judging of each brain's turns takes
    brain_of    the name of a turn's brain, by the turn's id
    recorded    a turn by session, turn and step key; None when its content is gone, or SQL kept it redacted
    bells       where a doorbell goes that is another build's to answer
    digests     of this worker's brains: a turn that is pinned is judged by the one that began it
    places      how many judges run at once in this process
    limit_s     a judge that has not returned by then is abandoned in its thread, and tried again
    stops       what operators have stopped: those of its brain and tenant; a judge's model heeds its own
    """

    brains: ByBrain[JudgeRuntime]
    brain_of: Callable[[str], str | None]
    rows: JudgementRows
    recorded: Callable[[str, str, str], RecordedTurn | None]
    bells: JudgeBells
    beats: LeaseRenewer
    lease_s: float
    limit_s: float = JUDGE_LIMIT_S
    max_tries: int = MAX_TRIES
    places: int = 4
    digests: Collection[str] = ()
    stops: StopsInForce | None = None

    def __post_init__(self) -> None:
        self._free = threading.BoundedSemaphore(self.places)

    def run(self, session_id: str, turn_id: str, judge_name: str) -> str:
        """Answer one doorbell: `judged`, `failed` (it is tried again), `paused` (by operators), `dead`, `dropped`,
        `later`, or `passed` to the build that is to judge the turn.

        Raises what SQL and Redis raise; the row's lease then lapses, and the next doorbell finds it free.
        """
        if not self._free.acquire(blocking=False):
            return "later"  # the sweeper rings again: results must not wait behind slow judges
        try:
            tries = self.rows.claim(turn_id, judge_name, self.lease_s)
            if tries is None:
                return "dropped"
            with self.beats.renew(lambda: self._beat(turn_id, judge_name, tries), _ignore):
                return self._try(session_id, turn_id, judge_name, tries)
        finally:
            self._free.release()

    def _beat(self, turn_id: str, judge_name: str, tries: int) -> str:
        return "OK" if self.rows.beat(turn_id, judge_name, tries, self.lease_s) else "LOST"

    def _try(self, session_id: str, turn_id: str, judge_name: str, tries: int) -> str:
        if tries > self.max_tries:
            died = f"its worker died, or was cut off, in each of {tries - 1} tries"
            return self._give_up(turn_id, judge_name, tries, died)
        brain = self.brain_of(turn_id)
        work = self.brains.of(brain)
        if work is None:  # a worker that has it may come first to the next try
            error = f"its brain {brain!r} is not one of this worker's: {', '.join(self.brains.names)}"
            return self._again(turn_id, judge_name, tries, error, "MissingBrain")
        stop = stop_of_turn(self.stops.in_force(), session_id, work.name) if self.stops is not None else None
        if stop is not None:
            return self._meet_stop(turn_id, judge_name, tries, stop)
        try:
            turn = self.recorded(session_id, turn_id, f"{turn_id}:judge:{judge_name}")
            if turn is None:
                return self._give_up(turn_id, judge_name, tries, NO_CONTENT)
            if not self._may_judge(turn):
                return self._pass_on(session_id, turn_id, judge_name, tries)
            judge = judges_named([judge_name], work.own, work.auxiliary)[judge_name]
            if judge is None:
                return self._give_up(turn_id, judge_name, tries, unknown_judge(judge_name, work.own))
            span = judge_span(session_id, turn_id, turn.traceparent, judge_name, tries)
            allowance = Allowance(work.price)
            with in_span(span, redact=work.redact), allowance.activate():
                judgement = self._judge(judge, judge_case(turn), work.redact)
        except StopDeferred as paused:
            return self._wait(turn_id, judge_name, tries, paused.why)
        except Exception as failure:
            return self._failed(turn_id, judge_name, tries, failure, work.redact)
        spends = tuple(allowance.spends) or _reported_spend(judgement)
        self.rows.settle(turn_id, judge_name, judgement, spends)
        return "judged"

    def _may_judge(self, turn: RecordedTurn) -> bool:
        if turn.format not in FORMATS_READ:
            return False
        return not turn.pin or turn.pin in self.digests or self.bells.is_released_here(turn.pin)

    def _pass_on(self, session_id: str, turn_id: str, judge_name: str, tries: int) -> str:
        """It is another build's, and costs no try. The row is free before that one is rung for."""
        self.rows.postpone(turn_id, judge_name, OTHER_BUILD, 0.0, tries)
        if self.bells.pass_judge(session_id, turn_id, judge_name) == "UNSERVED":
            again = self.rows.claim(turn_id, judge_name, self.lease_s)
            if again is not None:
                self.rows.postpone(turn_id, judge_name, OTHER_BUILD, UNSERVED_AGAIN_S, again)
        return "passed"

    def _judge(self, judge: Judge, case: JudgeCase, redact: bool) -> Judgement:
        found: Any = call_within(self.limit_s, f"judge {judge.name!r}", lambda: judge.judge(case))
        if not isinstance(found, Judgement):
            raise TypeError(f"judge {judge.name!r} returned a {type(found).__name__}; it must return a Judgement")
        judgement = Judgement.model_validate(found.model_dump())  # one made without checks is checked here
        return judgement.model_copy(update={"reason": ""}) if redact else judgement

    def _failed(self, turn_id: str, judge_name: str, tries: int, failure: Exception, redact: bool) -> str:
        log.error("judge failed", failure=failure, turn_id=turn_id, judge=judge_name, tries=tries)
        kind = type(failure).__name__
        return self._again(turn_id, judge_name, tries, kind if redact else f"{kind}: {failure_words(failure)}", kind)

    def _again(self, turn_id: str, judge_name: str, tries: int, error: str, kind: str) -> str:
        """It is tried again, unless that was the last time."""
        failure = WorkFailure.JUDGE_FAILED, kind
        if tries >= self.max_tries:
            return WorkOutcome(self._give_up(turn_id, judge_name, tries, error), *failure)
        again_after_s = retry_after_s(tries, random.random())
        self.rows.fail(turn_id, judge_name, error[:MOST_ERROR_CHARS], again_after_s, dead=False, tries=tries)
        return WorkOutcome("failed", *failure)

    def _meet_stop(self, turn_id: str, judge_name: str, tries: int, stop: Stop) -> str:
        if stop.mode == "pause":
            return self._wait(turn_id, judge_name, tries, stop.describe())
        again = f"once it is lifted `brainq finalize retry {turn_id} judge:{judge_name}` judges it"
        return self._give_up(turn_id, judge_name, tries, f"{stop.describe()}; {again}")

    def _wait(self, turn_id: str, judge_name: str, tries: int, why: str) -> str:
        """It is looked at again and again, for as long as it is paused."""
        self.rows.postpone(turn_id, judge_name, why[:MOST_ERROR_CHARS], PAUSED_RETRY_S, tries)
        return "paused"

    def _give_up(self, turn_id: str, judge_name: str, tries: int, error: str) -> str:
        log.warning("judgement is dead", turn_id=turn_id, judge=judge_name)
        self.rows.fail(turn_id, judge_name, error[:MOST_ERROR_CHARS], 0.0, dead=True, tries=tries)
        return WorkOutcome("dead", WorkFailure.JUDGE_FAILED)


def _ignore(word: str) -> None:
    """Another try has the row: this one's score is written only if it comes first."""


def _reported_spend(judgement: Judgement) -> tuple[Spend, ...]:
    """What a judge of the brain's own says it used; the price is unknown."""
    used = TokenUsage(input_tokens=judgement.input_tokens or 0, output_tokens=judgement.output_tokens or 0)
    return (Spend.from_usage("judge", 0, judgement.model or "", used, None),) if used.total else ()
