"""The runner of judges: it answers one doorbell of `brainq.judges`, and builds the case that the judge reads."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brainq.contracts.evaluation import Judge, JudgeCase, Judgement
from brainq.contracts.memory import RecordedTurn
from brainq.contracts.message import Message
from brainq.contracts.model import Price, Spend, TokenUsage, unknown_price
from brainq.contracts.stop import stop_of_turn
from brainq.engine.brain.brains import ByBrain
from brainq.engine.finalize.recall import NO_CONTENT
from brainq.engine.jobs import GivenUp, JobRunner, Postponed, TryFailed, job_key
from brainq.engine.memory.judges import judges_named, unknown_judge
from brainq.engine.memory.words import cut
from brainq.engine.models.asking.bill import Allowance
from brainq.engine.models.asking.deferred import StopDeferred
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.spans import judge_span
from brainq.runtime.observe.tracing import in_span
from brainq.runtime.processes.threads import call_within
from brainq.runtime.text.failures import failure_words

if TYPE_CHECKING:
    from brainq.adapters.redis.finals import RedisFinalChain
    from brainq.adapters.redis.stops import RedisStops
    from brainq.adapters.sql.repositories.judgements import Judgements

log = logger("brainq.finalize")
MOST_RESULT_CHARS = 2_000  # of one tool result
MOST_MESSAGE_CHARS = 8_000  # of any other message, of the question, and of the answer
MOST_TRANSCRIPT_CHARS = 40_000
MOST_FACTS = 50
MOST_FACT_CHARS = 1_000
_NOTE_KEYS = ("text", "excerpt")
JUDGE_LIMIT_S = 60.0  # for one judge and one turn; a model gets less, so that its fallback still has time
PAUSED_RETRY_S = 30.0  # at most this long after a stop is lifted, a judgement that it paused continues
UNSERVED_AGAIN_S = 30.0  # until the build that must judge a turn is checked again for workers
OTHER_BUILD = "it waits for the build whose brain the turn is pinned to"


def judge_case(turn: RecordedTurn) -> JudgeCase:
    """Return the case of a turn. Its size is bounded for every turn."""
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
    """Return one `[role] text` line for each message. Messages in the middle are left out if the text is too long.

    Line breaks become spaces, so that no text can begin a new line and appear in another role.
    """
    lines = [line for message in messages if (line := _transcript_line(message))]
    if sum(map(len, lines)) + len(lines) <= MOST_TRANSCRIPT_CHARS:
        return "\n".join(lines)
    # The first message has the question, and the last ones have the basis of the answer.
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
    """Return the facts on which the answer should be based: those of the context pack, and the quotes of its citations.

    The pack's facts are its `relevant_facts` (texts, or objects with a `text`) or, without them, the `text` or
    `excerpt` of its `notes`. A pack that is not such JSON has no facts.
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
    """The settings for judging the turns of one brain.

    own: the brain's own judges.
    auxiliary: the model of the built-in judges, or None if they use rules.
    price: the price of the judging model's usage.
    name: the name of the brain.
    redact: whether SQL keeps only the score and the kind of an error. Reasons and messages may quote the turn.
    """

    own: Sequence[Judge]
    auxiliary: AuxiliaryModel | None
    redact: bool = False
    price: Price = unknown_price
    name: str = ""


@dataclass(eq=False, kw_only=True)
class JudgeRunner:
    """The runner of one judge on one turn. It is stateless: any process may run any judge of any turn.

    brains: the settings for judging, for each brain.
    brain_of: returns the name of a turn's brain, by the turn's id.
    recorded: returns a turn by session, turn and step key, or None if its content is gone or SQL kept it redacted.
    bells: rings for judgements that another build must make.
    places: how many judges run at once in this process.
    limit_s: after this time, in seconds, a judge is abandoned in its thread and tried again.
    stops: what operators have stopped. Brains and tenants are checked here; a judge's model checks its own stops.
    """

    brains: ByBrain[JudgeRuntime]
    brain_of: Callable[[str], str | None]
    rows: Judgements
    recorded: Callable[[str, str, str], RecordedTurn | None]
    bells: RedisFinalChain
    jobs: JobRunner
    limit_s: float = JUDGE_LIMIT_S
    places: int = 4
    stops: RedisStops | None = None

    def __post_init__(self) -> None:
        self._free = threading.BoundedSemaphore(self.places)

    def run(self, session_id: str, turn_id: str, judge_name: str) -> str:
        """Answer one doorbell, and return the outcome.

        It is `judged`, `failed` (to be tried again), `paused` (by operators), `dead`, `dropped`, `later`, or `passed`
        to the build that must judge the turn. Raises what SQL and Redis raise. The row's lease then lapses, and the
        next doorbell finds it free.
        """
        if not self._free.acquire(blocking=False):
            return "later"  # the sweeper rings again: results must not wait behind slow judges
        try:
            key = job_key(turn_id, judge_name)
            job = self.rows.take(key, self.jobs.lease_s)
            if job is None:
                return "dropped"
            trial = JudgeTry(self, session_id, turn_id, judge_name, job["tries"])
            did = self.jobs.run(key, job["tries"], trial.run, show=trial.show)
        finally:
            self._free.release()
        if did == "dead":
            log.warning("judgement is dead", turn_id=turn_id, judge=judge_name)
        elif did == "passed":
            self._ring_other_build(session_id, turn_id, judge_name)
        return did

    def _ring_other_build(self, session_id: str, turn_id: str, judge_name: str) -> None:
        """Ring for the build that must judge the turn. If that build has no workers now, postpone the judgement."""
        if self.bells.pass_judge(session_id, turn_id, judge_name) != "UNSERVED":
            return
        key = job_key(turn_id, judge_name)
        if (again := self.rows.take(key, self.jobs.lease_s)) is not None:
            self.rows.postpone(key, again["tries"], OTHER_BUILD, UNSERVED_AGAIN_S)


@dataclass(eq=False, slots=True)
class JudgeTry:
    """One try of one judgement."""

    runner: JudgeRunner
    session_id: str
    turn_id: str
    judge_name: str
    tries: int
    redact: bool = False

    def run(self) -> str:
        """Judge the turn and write the score. Raises what `JobRunner.run` expects of work."""
        runner, brain = self.runner, self.runner.brain_of(self.turn_id)
        work = runner.brains.of(brain)
        if work is None:  # a worker that has the brain may make the next try
            here = ", ".join(runner.brains.names)
            raise TryFailed(f"its brain {brain!r} is not one of this worker's: {here}", "MissingBrain")
        self.redact = work.redact
        self._require_not_stopped(work)
        turn = runner.recorded(self.session_id, self.turn_id, f"{self.turn_id}:judge:{self.judge_name}")
        if turn is None:
            raise GivenUp(NO_CONTENT)
        if not runner.bells.may_finish(turn):
            raise Postponed(OTHER_BUILD, 0.0, "passed")
        judge = judges_named([self.judge_name], work.own, work.auxiliary)[self.judge_name]
        if judge is None:
            raise GivenUp(unknown_judge(self.judge_name, work.own))
        span = judge_span(self.session_id, self.turn_id, turn.traceparent, self.judge_name, self.tries)
        allowance = Allowance(work.price)
        try:
            with in_span(span, redact=work.redact), allowance.activate():
                judgement = self._judge(judge, judge_case(turn))
        except StopDeferred as paused:
            raise Postponed(paused.why, PAUSED_RETRY_S, "paused") from paused
        spends = tuple(allowance.spends) or _reported_spend(judgement)
        runner.rows.settle(self.turn_id, self.judge_name, judgement, spends)
        return "judged"

    def show(self, failure: Exception) -> str:
        """Log a failure. Returns what SQL keeps of it."""
        ids = {"turn_id": self.turn_id, "judge": self.judge_name}
        log.error("judge failed", failure=failure, **ids, tries=self.tries)
        kind = type(failure).__name__
        return kind if self.redact else f"{kind}: {failure_words(failure)}"

    def _require_not_stopped(self, work: JudgeRuntime) -> None:
        """Raise Postponed while operators have paused the brain or the tenant, GivenUp if they have forbidden it."""
        stops = self.runner.stops
        stop = None if stops is None else stop_of_turn(stops.in_force(), self.session_id, work.name)
        if stop is None:
            return
        if stop.mode == "pause":
            raise Postponed(stop.describe(), PAUSED_RETRY_S, "paused")
        command = f"`brainq finalize retry {self.turn_id} judge:{self.judge_name}`"
        raise GivenUp(f"{stop.describe()}; once it is lifted {command} judges it")

    def _judge(self, judge: Judge, case: JudgeCase) -> Judgement:
        found: Any = call_within(self.runner.limit_s, f"judge {judge.name!r}", lambda: judge.judge(case))
        if not isinstance(found, Judgement):
            raise TypeError(f"judge {judge.name!r} returned a {type(found).__name__}; it must return a Judgement")
        judgement = Judgement.model_validate(found.model_dump())  # one made without checks is checked here
        return judgement.model_copy(update={"reason": ""}) if self.redact else judgement


def _reported_spend(judgement: Judgement) -> tuple[Spend, ...]:
    """Return the usage that one of the brain's own judges reports, at an unknown price."""
    used = TokenUsage(input_tokens=judgement.input_tokens or 0, output_tokens=judgement.output_tokens or 0)
    return (Spend.from_usage("judge", 0, judgement.model or "", used, None),) if used.total else ()
