"""The learner by rules: topics (by RAKE), sources and open questions of a turn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from brainq.contracts.memory import Observation, ObservationKind, RecordedTurn
from brainq.contracts.status import Ending, StopReason
from brainq.engine.memory.words import cut, is_stop_word, looks_secret, sentences

# The key terms of a text by RAKE: rapid automatic keyword extraction. Pure. S. Rose, D. Engel, N. Cramer, W. Cowley:
# "Automatic keyword extraction from individual documents", in M. Berry and J. Kogan (eds.), Text Mining: Applications
# and Theory, Wiley 2010, pp. 1-20.

LONGEST_PHRASE = 4  # words; RAKE is known to score long phrases high only because they are long
_PIECE = re.compile(r"\w+(?:[-'\N{RIGHT SINGLE QUOTATION MARK}.]\w+)*|[^\w\s]|\n")

# Words for what the user wants done, not for the subject. RAKE's authors also adapt the stop list to the field.
_REQUEST_LIST = """
    please tell show give find explain help want need know prefer like thanks thank hello hi hey could can would make
    get look write list say think use using used also still already really much many lot way thing things something
    anything everyone today tomorrow yesterday new good best better yes okay ok sorry
"""
_REQUEST_WORDS = frozenset(_REQUEST_LIST.split())


def key_terms(text: str, max_terms: int) -> tuple[str, ...]:
    """Return the `max_terms` best phrases in lower case, best first. Equal ones keep their order in the text.

    Candidates are the runs of words between stop words and punctuation. A word scores deg(w) / freq(w). deg(w) is the
    number of words, w included, in all candidates that contain w. A candidate scores the sum of its words.
    """
    candidates = _candidates(text)
    frequency: Counter[str] = Counter(word for phrase in candidates for word in phrase)
    degree: Counter[str] = Counter()
    for phrase in candidates:
        for word in phrase:
            degree[word] += len(phrase)
    scores = {phrase: sum(degree[word] / frequency[word] for word in phrase) for phrase in candidates}
    ranked = sorted(scores, key=lambda phrase: -scores[phrase])  # stable: equal scores keep the text's order
    return tuple(" ".join(phrase) for phrase in ranked[:max_terms])


def _candidates(text: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    run: list[str] = []
    for piece in (*_PIECE.findall(text), "\n"):
        word = piece.casefold()
        if piece[0].isalnum() and not is_stop_word(word) and word not in _REQUEST_WORDS:
            run.append(word)
            continue
        if 0 < len(run) <= LONGEST_PHRASE and any(len(word) > 1 and not word.isdigit() for word in run):
            found.append(tuple(run))
        run = []
    return found


MOST_TOPICS = 5
MOST_SOURCES = 16  # the most that a result has: eight local ones, and eight from the web
_MOST_CHARS = 300
_READ_CHARS = 4_000  # of the message: the subject is named early, and the rest is material
_CODE = re.compile(r"(```|~~~).*?(?:\1|\Z)|`[^`\n]*`|\b\w{1,20}://\S+", re.DOTALL)
# They concern the answer as a whole, so only its first sentences are searched: "I could not find a cheaper one" in the
# middle of an answer leaves nothing open.
_UNKNOWN = re.compile(
    r"\b(?:I|we)\s+(?:do not|don't|did not|didn't)\s+"
    r"(?:know|have (?:any |enough |that |the )?(?:information|data|access)|find)\b"
    r"|\b(?:I|we)(?:'m| am| are|'re)?\s*(?:could not|couldn't|cannot|can't|can not"
    r"|was unable to|were unable to|unable to|not able to|was not able to|failed to)\s+(?:\w+\s+)?"
    r"(?:find|determine|answer|access|locate|retrieve|verify|confirm|tell|say|reach|look|read|search|open|get)\b"
    r"|\bI(?:'m| am) not (?:sure|certain)\b|\bno (?:information|results?|data|answer|matching \w+)\b.{0,40}"
    r"\b(?:found|available|about|on|for)\b",
    re.IGNORECASE,
)
_OPENING_SENTENCES = 2


class RuleResearchLearner:
    """A learner by rules. It implements `contracts.memory.AutonomousResearchLearner`.

    The same turn always gives the same observations.
    """

    def observe_turn(self, turn: RecordedTurn, source_event_id: str) -> tuple[Observation, ...]:
        """Return the turn's topics, sources and open question, in this order.

        These are at most 5 topics (RAKE key terms of the question), 16 sources (which the answer cites) and one open
        question. Never raises because of the turn's content.
        """
        found = (*_topics(turn), *_sources(turn), *_open_question(turn))
        return tuple(dict.fromkeys(one for one in found if not looks_secret(one.text)))


def _topics(turn: RecordedTurn) -> Iterator[Observation]:
    text = _CODE.sub("\n", turn.user_message[:_READ_CHARS])
    for term in key_terms(text, MOST_TOPICS):
        yield _observation("topic", term)


def _sources(turn: RecordedTurn) -> Iterator[Observation]:
    if not was_answered(turn):
        return  # the sources did not lead to an answer
    for citation in turn.citations[:MOST_SOURCES]:
        text = f"{citation.title} ({citation.source})" if citation.title else citation.source
        if text.strip():
            yield _observation("source", text)


def _open_question(turn: RecordedTurn) -> Iterator[Observation]:
    if is_open(turn) and (question := question_of(turn.user_message)):
        yield _observation("open_question", question)


def was_answered(turn: RecordedTurn) -> bool:
    """Return whether the turn has a whole answer of the model."""
    return turn.ending is Ending.COMPLETED and turn.stop_reason is StopReason.ANSWERED


def is_open(turn: RecordedTurn) -> bool:
    """Return whether the question still needs an answer.

    It does after a limit, a timeout or a failure; if the answer begins by not knowing; and if every call of the turn
    failed. It does not after a cancel, because the answer is no longer wanted.
    """
    if turn.ending is Ending.CANCELLED:
        return False
    if not was_answered(turn):
        return True
    results = [message for message in turn.messages if message.role == "tool"]
    if results and all(message.is_error for message in results):
        return True
    opening = " ".join(sentences(turn.text[:_READ_CHARS])[:_OPENING_SENTENCES])
    return bool(_UNKNOWN.search(opening.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")))


def question_of(message: str) -> str:
    """Return the last question of the message, or its first sentence if it has none. Returns "" if it is only code."""
    parts = sentences(_CODE.sub("\n", message[:_READ_CHARS]))
    questions = [sentence for sentence in parts if sentence.endswith("?")]
    return cut((questions[-1:] or parts[:1] or [""])[0], _MOST_CHARS)


def _observation(kind: ObservationKind, text: str) -> Observation:
    return Observation(kind=kind, text=cut(" ".join(text.split()), _MOST_CHARS))
