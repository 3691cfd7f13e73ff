"""What of a message are its writer's own words about themself. Pure.

A message quotes, pastes and plays: code, mails to be translated, roles to be taken. What stands there in the first
person is somebody else's. All of it is dropped before any rule reads on; what is left may be too little, never
too much.
"""

from __future__ import annotations

import re

from brainq.finalize.words import sentences

MOST_CHARS = 20_000  # of one message; what follows is pasted, most likely

_FENCE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]*`")
# Every pattern is linear in the text: what never closes reaches to the end, and what must close is bounded.
_QUOTED_LINE = re.compile(r"^[^\S\n]*(?:>|\|).*$", re.MULTILINE)
_TAGGED = re.compile(r"<(\w{1,64})(?!\w)[^>]{0,500}>.*?(?:</\1>|\Z)", re.DOTALL)
_QUOTES = re.compile(
    '"[^"]*"'
    "|\N{LEFT DOUBLE QUOTATION MARK}[^\N{RIGHT DOUBLE QUOTATION MARK}]*(?:\N{RIGHT DOUBLE QUOTATION MARK}|\\Z)"
    "|\N{DOUBLE LOW-9 QUOTATION MARK}[^\N{LEFT DOUBLE QUOTATION MARK}]*(?:\N{LEFT DOUBLE QUOTATION MARK}|\\Z)"
    "|\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}[^\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}]*"
    "(?:\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}|\\Z)"
    r"|(?<!\w)'[^'\n]{1,500}'(?!\w)"
    r"|(?<!\w)\N{LEFT SINGLE QUOTATION MARK}[^\n]{1,500}?\N{RIGHT SINGLE QUOTATION MARK}(?!\w)"
)
_CLOSING = (
    "\"'\N{RIGHT SINGLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}\N{LEFT DOUBLE QUOTATION MARK}"
    "\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}"
)
QUOTED = "\N{OBJECT REPLACEMENT CHARACTER}"
_LEFTOVER_QUOTES = frozenset(
    '"\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}'
    "\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}" + QUOTED
)

# After one of these with a colon comes material to work on, in nobody's name.
_WORK_ON = re.compile(
    r"\b(?:translat|summari[sz]|rewrit|rephras|paraphras|proofread|correct|fix|edit|improv|review|explain|analy[sz]"
    r"|classif|extract|repl(?:y|ies)|respond|answer|draft|writ|compos|continu|complet|convert|format|check|pars|read"
    r"|shorten|email|mail|letter|text|message|poem|story|lyrics|transcript|document|article|review|essay|log|note"
    r"|following|below)",
    re.IGNORECASE,
)
_COLON = re.compile(r":(?=\s|$)")
_ABOUT_ME = re.compile(r"\b(?:remember|about me|know about|for future reference)\b", re.IGNORECASE)
_MADE_UP = re.compile(
    r"\b(?:imagin(?:e|ing)|pretend(?:ing)?|suppos(?:e|ing)|hypothetical(?:ly)?|role[- ]?play(?:ing)?|what if"
    r"|let'?s say|act as|act like|you are now|play the (?:role|part)|for example|e\.g\.|as if)(?=\W|$)",
    re.IGNORECASE,
)
# A sentence with one of these says what somebody said, or asks for words to be written.
_TOLD = re.compile(
    r"\b(?:say|says|said|saying|tell|tells|told|wrote|writes|write|writing|quote|quotes|quoted|claims?|claimed"
    r"|lyrics?|poem|story|song|translate|translation|sentence|phrase|rephrase|summari[sz]e)\b",
    re.IGNORECASE,
)


def own_sentences(message: str) -> list[str]:
    """The sentences of a message that its writer says in their own name.

    Left out: code, quotes and quoted lines, what follows "translate this:" and its like, everything after an
    invitation to imagine or to play a role, sentences about what was said or shall be written, and questions.
    """
    text = message[:MOST_CHARS].replace("\N{RIGHT SINGLE QUOTATION MARK}s", "'s")
    for pattern in (_FENCE, _TAGGED, _QUOTED_LINE):
        text = pattern.sub("\n", text)
    text = _INLINE_CODE.sub(QUOTED, text)
    text = _QUOTES.sub(_unquote, text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    text = _before_material(text)
    found: list[str] = []
    for sentence in sentences(text):
        if _MADE_UP.search(sentence):
            break
        if sentence.rstrip(" )").endswith("?") or _TOLD.search(sentence):
            continue
        if not _LEFTOVER_QUOTES.intersection(sentence):
            found.append(sentence)
    return found


def _before_material(text: str) -> str:
    """The lines before the first that announces material to work on."""
    at = 0
    for line in text.split("\n"):
        colons = [found.end() for found in _COLON.finditer(line)]
        announced = line[: colons[-1]] if colons else ""
        if _WORK_ON.search(announced) and not _ABOUT_ME.search(announced):
            return text[: max(0, at - 1)]
        at += len(line) + 1
    return text


def _unquote(found: re.Match[str]) -> str:
    """One quoted word is a name or an emphasis; more of them are somebody's words."""
    inside = found.group()[1:-1]
    closed = found.group()[-1] in _CLOSING  # what is never closed is quoted to the end
    return inside if closed and inside.replace("-", "").isalnum() else QUOTED
