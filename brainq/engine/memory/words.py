"""Sentences, words and terms of a text, and whether a text looks like a secret.

These are the parts that the rules for English texts share. Pure.
"""

from __future__ import annotations

import re

# The stop list of the Snowball project (M. Porter, snowball.tartarus.org/algorithms/english/stop.txt) without
# contractions, which `is_stop_word` splits.
_STOP_LIST = """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves what which who whom this that these those am is are
    was were be been being have has had having do does did doing would should could ought cannot a an the and
    but if or because as until while of at by for with about against between into through during before after
    above below to from up down in out on off over under again further then once here there when where why how
    all any both each few more most other some such no nor not only own same so than too very can will just now
    let
"""
STOP_WORDS = frozenset(_STOP_LIST.split())
_WORD = re.compile(r"[^\W_]+(?:['\N{RIGHT SINGLE QUOTATION MARK}.][^\W_]+)*")
_END = re.compile(r"(?<=[.!?;])[\"'\N{RIGHT DOUBLE QUOTATION MARK})\]]*\s+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr|vs|etc|approx|No|e\.g|i\.e|a\.m|p\.m)|\b(?-i:[A-Z]))\.$", re.IGNORECASE
)
_LOOK_BACK = 24  # characters before the end of a sentence; a long text is not read again at each sentence
_BULLET = re.compile(r"^\s*(?:[-*+\N{BULLET}]|\d{1,3}[.)])\s+")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each with its closing mark.

    The end of a line ends a sentence. List marks are removed.
    """
    found: list[str] = []
    for line in text.splitlines():
        held = ""
        for piece in _END.split(_BULLET.sub("", line)):
            held = f"{held} {piece}".strip() if held else piece.strip()
            if _ABBREVIATION.search(held[-_LOOK_BACK:]):
                continue
            if held:
                found.append(held)
            held = ""
        if held:
            found.append(held)
    return found


def raw_words(text: str) -> list[str]:
    """Return words and numbers unchanged, in order."""
    return _WORD.findall(text)


def terms(text: str) -> list[str]:
    """Return the content words of a text in order, with repeats: in lower case, without stop words, in the singular."""
    return [stem(word.casefold()) for word in raw_words(text) if not is_stop_word(word)]


def is_stop_word(word: str) -> bool:
    """Return whether a word is a stop word such as `the` or `It`, or a contraction of one, such as `I'm` or `don't`."""
    head, mark, tail = word.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").partition("'")
    return head in STOP_WORDS or (mark != "" and tail == "t" and head.endswith("n"))


def stem(word: str) -> str:
    """Return the singular of a plural, and the owner of a possessive, by the S stemmer.

    D. Harman, "How effective is suffixing?", JASIS 42(1), 1991.

        >>> [stem(word) for word in ("queries", "boxes", "notes", "glass", "bus")]
        ['query', 'boxe', 'note', 'glass', 'bus']
    """
    word = word.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").removesuffix("'s")
    if len(word) <= 3:
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")):
        return word[:-1]
    return word


def cut(text: str, max_chars: int) -> str:
    """Return `text` in at most `max_chars` characters.

    A shortened text ends with an ellipsis, after a word if possible.
    """
    if len(text) <= max_chars:
        return text
    head = text[: max_chars - 1]
    at_word, _, _ = head.rpartition(" ")
    return (at_word if len(at_word) >= max_chars // 2 else head).rstrip() + "…"


# Text that must not be remembered: passwords, keys, numbers of cards and accounts. Pure. The check prefers one kind of
# error on purpose: a memory that is left out costs little, but a password in a later prompt does harm. It knows words
# and patterns; a secret without either is not found.

_SECRET_WORD = re.compile(
    r"\b(?:pass(?:word|phrase|code|wd)s?|pwd|pin|secrets?|credentials?|cvv|cvc|ssn|social security|iban|otp|2fa"
    r"|(?:api|access|private|secret|encryption|licen[cs]e|ssh|recovery|signing)[\s_-]*(?:keys?|tokens?|codes?)"
    r"|(?:auth|bearer|refresh|session|security)[\s_-]*(?:tokens?|codes?)|(?:credit|debit|bank) card"
    r"|(?:card|account) number|seed phrase)\b",
    re.IGNORECASE,
)
# Prefixes that services give their keys so that scanners find them, and a password inside a URL.
_SECRET_KEY = re.compile(
    r"\b(?:sk|pk|rk)[-_]\w{3,}|\bgh[pousr]_\w{10,}|\bgithub_pat_|\bglpat-|\bA(?:KIA|SIA)[0-9A-Z]{12,}|\bAIza[\w-]{20,}"
    r"|\bxox[abprs]-|\beyJ[\w-]{8,}\.|-----BEGIN |\b\w{1,20}://[^\s/@:]{0,200}:[^\s/@]{1,200}@"
)
# Numbers of cards, accounts and social security.
_SECRET_NUMBER = re.compile(r"\d(?:[ -]?\d){12,}|\b\d{3}-\d{2}-\d{4}\b|\b[A-Z]{2}\d{2}(?: ?[0-9A-Z]{4}){3,}")
_URL = re.compile(r"\b\w{1,20}://\S+|\bwww\.\S+")
_TOKEN = re.compile(r"[^\s,;:=\"'`()<>\[\]{}]{8,}")
_LONG = 20
_SAID = re.compile(rf"({_SECRET_WORD.pattern})([\"']?\s*(?:\bis\b|[:=])\s*[\"']?)([^\s\"']+)", re.IGNORECASE)
_BLOCK = re.compile(r"-----BEGIN [^-]+-----.*?(?:-----END [^-]+-----|\Z)", re.DOTALL)
HIDDEN = "[hidden]"


def hide_secrets(text: str) -> str:
    """Return the text without the values that `looks_secret` finds: those after the name of a secret, keys, numbers of
    cards and accounts, and random tokens."""
    text = _SECRET_NUMBER.sub(HIDDEN, _SAID.sub(rf"\1\2{HIDDEN}", _BLOCK.sub(HIDDEN, text)))
    return re.sub(r"\S+", lambda found: _TOKEN.sub(_hidden_token, found[0]), text)


def _hidden_token(found: re.Match[str]) -> str:
    token = found[0]
    return HIDDEN if _SECRET_KEY.search(token) or _is_random(token.strip(".!?")) else token


def is_secret_name(name: str) -> bool:
    """Return whether a field of this name holds a secret."""
    return _SECRET_WORD.search(name.replace("_", " ").replace("-", " ")) is not None or name.lower() == "token"


def looks_secret(text: str) -> bool:
    """Return whether the text names, contains or resembles a password, a key, or the number of a card or an account."""
    if _SECRET_WORD.search(text) or _SECRET_KEY.search(text) or _SECRET_NUMBER.search(text):
        return True
    return any(_is_random(token.strip(".!?")) for token in _TOKEN.findall(_URL.sub(" ", text)))


def _is_random(token: str) -> bool:
    """Return whether a token is long with letters and digits mixed, or short with three kinds of characters.

    An example of the latter is `Tr0ub4dor&3`.
    """
    letters, digits = sum(map(str.isalpha, token)), sum(map(str.isdigit, token))
    if len(token) >= _LONG:
        return letters >= 4 and digits >= 4
    odd = sum(not char.isalnum() and char not in "-_./@+'%" for char in token)
    return letters >= 3 and digits >= 1 and odd >= 1
