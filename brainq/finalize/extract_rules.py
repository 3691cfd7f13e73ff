"""What a user says of themself, found by rules: the extractor that needs no model.

Reads only the user's own message. The conversation holds more under the role `user`, such as notices of the
runtime that quote tools; tool results, the context pack and the answer are other people's words, and a memory
made of them would be theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from brainq.contracts.memory import MemoryItem
from brainq.contracts.recorded import RecordedTurn
from brainq.finalize.own_words import own_sentences
from brainq.finalize.secrecy import looks_secret
from brainq.finalize.statements import stated
from brainq.finalize.words import raw_words

MOST_ITEMS = 8  # a turn
MOST_CHARS = 300  # of one item; a longer sentence is a story, not a fact
_FEWEST_WORDS = 2
_LONGEST_SENTENCE = 4 * MOST_CHARS  # before it is taken apart

_CLAUSE = re.compile(
    r"(?:,\s*(?:and|but|so|also|because|since|as)?\s*|;\s*|\s[-\N{EN DASH}\N{EM DASH}]\s"
    r"|\s(?:and|but|because)\s(?:also\s)?)"
    r"(?=(?:I|I'm|my|please|call me|always|never|remember|from now on)\b)",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\s*(?:if|unless|when|whenever|in case|as long as|while|once|until)\b", re.IGNORECASE
)
_OPENING = re.compile(
    r"^(?:(?:hi|hello|hey|thanks|thank you|ok|okay|well|so|also|and|but|by the way|btw|fyi|oh|yes|no|sure|actually|just"
    r"|one more thing|ps|p\.s\.|in general|generally)\b(?:\s+(?:there|all|again))?[\s,:!.-]+)+",
    re.IGNORECASE,
)


class RuleMemoryExtractor:
    """Finds statements such as "I prefer ...", "please always ...", "call me ...", "my dog's name is ...". Fits
    `contracts.memory.MemoryExtractor`; English; the same turn always gives the same items."""

    def extract_turn(self, turn: RecordedTurn) -> tuple[MemoryItem, ...]:
        """At most eight items, in the order they were said; never raises for what the user wrote."""
        found = (item for sentence in own_sentences(turn.user_message) for item in _items_of(sentence))
        return worth_keeping(found)


def worth_keeping(items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """The first eight different items without what looks like a secret."""
    kept: dict[str, MemoryItem] = {}
    for item in items:
        key = " ".join(raw_words(item.text)).casefold()
        if key not in kept and not looks_secret(item.text):
            kept[key] = item
        if len(kept) == MOST_ITEMS:
            break
    return tuple(kept.values())


def _items_of(sentence: str) -> Iterator[MemoryItem]:
    # The sentence as a whole decides about secrets: "my login is x, my password is y" must not leave the login.
    if len(sentence) > _LONGEST_SENTENCE or looks_secret(sentence):
        return
    for clause in _clauses(sentence):
        said = _OPENING.sub("", clause.strip()).strip().rstrip(".!;, ")
        if len(raw_words(said)) < _FEWEST_WORDS or len(said) > MOST_CHARS:
            continue
        found = stated(said)
        if found is not None and len(found[1]) <= MOST_CHARS:
            kind, text = found
            yield MemoryItem(kind=kind, text=text)


def _clauses(sentence: str) -> list[str]:
    """The sentence's statements; one that begins with a condition stays whole, and then matches nothing."""
    return [sentence] if _CONDITION.match(sentence) else _CLAUSE.split(sentence)
