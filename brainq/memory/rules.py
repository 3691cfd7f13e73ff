"""Memories by rules: what a user says of themself, found by a few plain shapes, and never a secret. The
fallback that needs no model. English.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from brainq.contracts.memory import MemoryItem, MemoryKind, RecordedTurn
from brainq.memory.words import raw_words, sentences

# Text that must not be remembered: passwords, keys, numbers of cards and accounts. Pure.
#
# Errs to one side on purpose: a memory left out costs little, a password that comes up in a later prompt does. It
# knows words and looks; a secret without either passes.

_SECRET_WORD = re.compile(
    r"\b(?:pass(?:word|phrase|code|wd)s?|pwd|pin|secrets?|credentials?|cvv|cvc|ssn|social security|iban|otp|2fa"
    r"|(?:api|access|private|secret|encryption|licen[cs]e|ssh|recovery|signing)[\s_-]*(?:keys?|tokens?|codes?)"
    r"|(?:auth|bearer|refresh|session|security)[\s_-]*(?:tokens?|codes?)|(?:credit|debit|bank) card"
    r"|(?:card|account) number|seed phrase)\b",
    re.IGNORECASE,
)
# Beginnings that services give their keys so that scanners find them, and a password inside a URL.
_SECRET_KEY = re.compile(
    r"\b(?:sk|pk|rk)[-_]\w{3,}|\bgh[pousr]_\w{10,}|\bgithub_pat_|\bglpat-|\bA(?:KIA|SIA)[0-9A-Z]{12,}|\bAIza[\w-]{20,}"
    r"|\bxox[abprs]-|\beyJ[\w-]{8,}\.|-----BEGIN |\b\w{1,20}://[^\s/@:]{0,200}:[^\s/@]{1,200}@"
)
# Cards, accounts, social security.
_SECRET_NUMBER = re.compile(r"\d(?:[ -]?\d){12,}|\b\d{3}-\d{2}-\d{4}\b|\b[A-Z]{2}\d{2}(?: ?[0-9A-Z]{4}){3,}")
_URL = re.compile(r"\b\w{1,20}://\S+|\bwww\.\S+")
_TOKEN = re.compile(r"[^\s,;:=\"'`()<>\[\]{}]{8,}")
_LONG = 20


def looks_secret(text: str) -> bool:
    """Whether the text names, holds or resembles a password, a key, or the number of a card or an account."""
    if _SECRET_WORD.search(text) or _SECRET_KEY.search(text) or _SECRET_NUMBER.search(text):
        return True
    return any(_is_random(token.strip(".!?")) for token in _TOKEN.findall(_URL.sub(" ", text)))


def _is_random(token: str) -> bool:
    """Long with letters and digits mixed, or short with three kinds of characters, as in `Tr0ub4dor&3`."""
    letters, digits = sum(map(str.isalpha, token)), sum(map(str.isdigit, token))
    if len(token) >= _LONG:
        return letters >= 4 and digits >= 4
    odd = sum(not char.isalnum() and char not in "-_./@+'%" for char in token)
    return letters >= 3 and digits >= 1 and odd >= 1


# What a user says of themself, found by a few plain shapes: the fallback that needs no model. English.
#
# It takes sentences over unchanged, and understands none. Only the user's own message is read, up to the first
# thing in it that may be another's words: text of a tool, a page or another person is not the user's memory.
# For more than this bring a `MemoryExtractor` of your own, or let the model do it.

MAX_ITEMS = 8  # a turn
MAX_ITEM_CHARS = 300  # of one item; a longer sentence is a story, not a fact
MAX_READ_CHARS = 20_000  # of one message; what follows is pasted, most likely
_INTRODUCTION = "The user said: "

# Code, quotes and tags begin what may be another's; so does a line that announces something below it.
_MATERIAL = re.compile(
    '```|~~~|`|^[^\\S\\n]*[>|]|<\\w|:[^\\S\\n]*$|["'
    "\N{LEFT DOUBLE QUOTATION MARK}\N{DOUBLE LOW-9 QUOTATION MARK}\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}"
    "\N{LEFT SINGLE QUOTATION MARK}]|(?<!\\w)'",
    re.MULTILINE,
)
# From here on the writer plays, or speaks for others.
_MADE_UP = re.compile(
    r"\b(?:imagine|pretend|suppose|hypothetical(?:ly)?|role[- ]?play|what if|let'?s say|act (?:as|like)|you are now"
    r"|for example|translate|summari[sz]e|rewrite|proofread)\b",
    re.IGNORECASE,
)
# Questions, denials, wishes, reports, conditions, things of the moment, and references to other text.
_UNSURE = re.compile(
    r"\?|\b(?:if|unless|until|not|no longer|used to|would|should|might|maybe|said|says|wrote|told|today"
    r"|tomorrow|right now|currently|these|those|it|this|above|below|second|first|errors?|bugs?"
    r"|broken|fails?|problems?|stuck)\b",
    re.IGNORECASE,
)
# What was so, before what is so now.
_FORMER = re.compile(r"I (?:no longer|used to|don't|do not)\b[^,;]{0,200}[,;] (?:(?:but|and|now) )*", re.IGNORECASE)
_DAY = r"(?:day|morning|evening|night|week|month|year|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"

_SHAPE_TEXTS: tuple[tuple[MemoryKind, str], ...] = (
    ("preference", r"I (?:really |much |generally )?prefer \w|I (?:hate|dislike|don't like|can't stand) \w"),
    ("preference", r"(?:please )?(?:always|never) \w+ \w|(?:please )?from now on,? \w"),
    ("preference", r"(?:please )?call me (?-i:[A-Z])\w+(?: please)?$"),
    ("habit", rf"I (?:usually|always|often|never|rarely) \w+ \w|every {_DAY} I \w|I \w.* every {_DAY}$"),
    ("fact", r"my (?:\w+(?:'s)? ){0,2}(?:name|birthday|time ?zone|job|diet|language|pronouns) (?:is|are) (?:now )?\w"),
    ("fact", r"my \w+ is (?:called|named) \w|my favou?rite \w+ is \w"),
    ("fact", r"I(?:'m| am) (?:allergic to|from|an? (?:vegetarian|vegan)|\d+ years old)\b"),
    ("fact", r"I (?:now )?(?:live in|work (?:as|at|for)|speak) \w"),
    ("fact", r"I(?:'ve| have)? (?:just |recently )?moved to \w"),
    ("fact", r"(?:please )?remember(?: that|:) \w+ \w"),
)

_SHAPES: list[tuple[MemoryKind, re.Pattern[str]]] = [
    (kind, re.compile(shape, re.IGNORECASE)) for kind, shape in _SHAPE_TEXTS
]


class RuleMemoryExtractor:
    """Finds sentences that begin like "I prefer ...", "please always ...", "call me ...", "my name is ...". Fits
    `contracts.memory.MemoryExtractor`; the same turn always gives the same items."""

    def extract_turn(self, turn: RecordedTurn) -> tuple[MemoryItem, ...]:
        """At most eight items, in the message's order; never raises for what the user wrote."""
        message = turn.user_message[:MAX_READ_CHARS].replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
        found: list[MemoryItem] = []
        for sentence in sentences(_MATERIAL.split(message, maxsplit=1)[0]):
            if _MADE_UP.search(sentence):
                break
            statement = _without_former(sentence.rstrip(".!; "))
            kind = _memory_kind(statement)
            if kind is not None:
                found.append(MemoryItem(kind=kind, text=f"{_INTRODUCTION}{statement}."))
        return worth_keeping(found)


def worth_keeping(items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """The first eight different items without what looks like a secret."""
    kept: dict[str, MemoryItem] = {}
    for item in items:
        key = " ".join(raw_words(item.text)).casefold()
        if key not in kept and not looks_secret(item.text):
            kept[key] = item
        if len(kept) == MAX_ITEMS:
            break
    return tuple(kept.values())


def _memory_kind(statement: str) -> MemoryKind | None:
    if len(statement) + len(_INTRODUCTION) >= MAX_ITEM_CHARS or _UNSURE.search(statement):
        return None
    return next((kind for kind, shape in _SHAPES if shape.match(statement)), None)


def _without_former(statement: str) -> str:
    """Of "I no longer live in Oslo, I live in Bern" the second half."""
    former = _FORMER.match(statement)
    return statement if former is None else statement[former.end() :]
