"""The shapes of statements people make of themselves, and the sentence each becomes. Pure.

Every shape stands at the beginning of a clause, with the verb right after "I": what is denied ("I don't prefer"),
wished ("I'd prefer") or reported ("he thinks I prefer") has another shape. A statement that leans on its
surroundings ("I prefer the second one") is none, because the memory has to stand alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from brainq.contracts.memory import MemoryKind
from brainq.finalize.third_person import of_the_user


@dataclass(frozen=True, slots=True)
class StatementRule:
    """`sentence` makes the memory of a match, or None where a closer look says that it is something else."""

    kind: MemoryKind
    pattern: re.Pattern[str]
    sentence: Callable[[re.Match[str]], str | None]


def stated(clause: str) -> tuple[MemoryKind, str] | None:
    """The kind and sentence of the first rule that knows this clause, else None."""
    asked = _REMEMBER.match(clause)
    if asked is not None:  # what is to be remembered may itself be a statement that a rule knows
        inner = asked["rest"].strip()
        text = _to_remember(inner)
        return stated(inner) or (None if text is None else ("fact", text))
    for rule in RULES:
        found = rule.pattern.match(clause)
        if found is not None and (text := rule.sentence(found)) is not None:
            return rule.kind, text
    return None


def _shape(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern + r"$", re.IGNORECASE | re.DOTALL)


# -- what makes a statement none ---------------------------------------------------------------------------------

_LEANS = re.compile(
    r"(?:it|this|that|these|those|them|here|there|one|both|neither|either|none|your?|yours|what|which|how|where|who|why"
    r"|such|the (?:first|second|third|last|latter|former|other|previous|next|above|below|same|new|old)"
    r"|(?:the )?options?|version [\w.]+|not|below|above|attached|already|on file|in (?:my|the|your|our)"
    r"|as (?:follows|above|below|you))\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:if|unless|would|could|might|wish|maybe|perhaps|probably|suppose|assuming|whether|today|tonight|tomorrow"
    r"|yesterday|right now|currently|at the moment|this (?:time|week|month|morning|evening|afternoon))\b",
    re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"\b(?:errors?|exceptions?|fail(?:s|ed|ing|ure)?|crash\w*|bugs?|broken|issues?|problems?|traceback|warnings?"
    r"|time[sd]? out|timeouts?|stuck|undefined|null)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"(?:\w+ed|said|got|saw|went|had|did|was|were|knew|thought|told|made|took|came|found|gave|heard|left|felt|wrote"
    r"|bought|met|ran|sent|kept|became|began|forgot|used|been|will|would|can|could|should|must|might|to|a|the|mind)\b",
    re.IGNORECASE,
)
_FEELING = re.compile(
    r"(?:being|getting|becoming|going|killing|driving|making|so|too|very|really|just|still)\b", re.I
)
_NO_NAME_LIST = """
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december back later tomorrow today tonight now when if at on after before crazy maybe
    asap please an a the
"""
_NO_NAME = frozenset(_NO_NAME_LIST.split())


def _steady(text: str) -> bool:
    """It holds beyond this conversation, and says itself what it is about."""
    return not (_LEANS.match(text) or _UNSURE.search(text) or _TROUBLE.search(text))


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


# -- the sentences ------------------------------------------------------------------------------------------------


def _says(found: re.Match[str]) -> str | None:
    rest = found["rest"].strip()
    return f"The user says {_lowered(of_the_user(found.group()))}." if rest and _steady(rest) else None


def _does(found: re.Match[str]) -> str | None:
    return None if _PAST.match(found["rest"].strip()) else _says(found)


def _preference(found: re.Match[str]) -> str | None:
    rest = found["rest"].strip()
    return f"The user's preference is {of_the_user(rest)}." if _steady(rest) else None


def _asks(found: re.Match[str]) -> str | None:
    rest = (found["rest"] or found["rest2"]).strip()
    if _LEANS.match(rest) or _TROUBLE.search(rest) or _PAST.match(rest):
        return None
    return f"The user asks: {_lowered(found['asked'].strip())}."


def _name(found: re.Match[str]) -> str | None:
    name = found["name"]
    if name.split()[0].casefold() in _NO_NAME or not name[0].isupper():
        return None
    not_ = " not" if found["no"] else ""
    return f"The user asks{not_} to be called {name}."


def _attribute(found: re.Match[str]) -> str | None:
    value = found["rest"].strip()
    if found["what"].lower().endswith("name"):
        value = value.partition(",")[0]  # "my name is Ann, and the flight was in May"
    if not _steady(value) or _FEELING.match(value):
        return None
    return f"The user's {of_the_user(found['what'])} {found['verb'].lower()} {of_the_user(value)}."


def _relative(found: re.Match[str]) -> str | None:
    """Of people and pets only what lasts: a name, an age, a profession. "My boss is angry" is the day's news."""
    value = found["rest"].strip()
    lasting = re.match(
        r"(?:called|named)\s+\w|\d+ (?:years|months) old|(?:a|an)\s+[a-z]\w+(?:\s+\w+)?$", value
    )
    if not (lasting or re.match(r"[A-Z][\w'-]*(?: [A-Z][\w'-]*)*$", value)) or not _steady(value):
        return None
    if re.match(r"an?\s+(?:bit|little|lot|mess|pain|problem|nightmare|idiot|jerk)\b", value, re.IGNORECASE):
        return None
    return f"The user's {of_the_user(found['what'])} {found['verb'].lower()} {of_the_user(value)}."


def _to_remember(inner: str) -> str | None:
    if _LEANS.match(inner) or re.match(r"(?:to|time|day|when|he|she|they|we|you)\b", inner, re.IGNORECASE):
        return None
    return f"The user asks to remember: {inner}."


# -- the shapes ---------------------------------------------------------------------------------------------------

_PLEASE = r"(?:(?:please|pls|kindly)[,\s]+)?"
_REMEMBER = _shape(
    _PLEASE + r"(?:(?:always\s+)?remember(?:\s+that|:|,)|(?:don't|do not|never)\s+forget(?:\s+that|:|,)"
    r"|for (?:future reference|the record)[,:]|keep in mind(?:\s+that|:|,))\s+(?P<rest>.+)"
)
_DAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_OFTEN = (
    rf"(?:every|each)\s+(?:other\s+)?(?:{_DAYS}|day|morning|afternoon|evening|night"
    r"|week|weekend|weekday|month|year)"
)
_RELATIVES = (
    "wife|husband|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|son|daughter|child|baby|kid|brother|sister|mother|mom|mum"
    "|father|dad|grandmother|grandfather|dog|cat|pet|horse|boss|manager|assistant|doctor|dentist|landlord|neighbou?r|cofounder"
)
_ATTRIBUTES = (
    r"(?:(?:first|last|middle|full|nick|family|user) ?)?name|birthday|birth ?date|date of birth|anniversary|age|height"
    r"|shoe size|job|job title|profession|occupation|employer|company|team|hobby|hobbies|home ?town|city|country"
    r"|nationality|(?:home |work |postal )?address|phone number|e-?mail(?: address)?|time ?zone|pronouns|diet"
    r"|allerg(?:y|ies)|blood type|(?:native |first |mother |preferred )(?:language|tongue)|operating system"
    r"|os|shell|editor|laptop|goal|budget|favou?rite [\w ]{2,40}?|preferred [\w ]{2,40}?"
)
_WORK = (
    r"(?:software |data |web |civil |high[- ]school |primary[- ]school |graduate |phd )?(?:developer|engineer"
    r"|programmer|scientist|analyst|designer|architect|teacher|professor|lecturer|student|researcher|nurse|doctor|physician|dentist"
    r"|surgeon|lawyer|accountant|manager|consultant|writer|journalist|translator|editor|photographer|artist|musician"
    r"|chef|cook|baker|farmer|driver|pilot|electrician|plumber|carpenter|mechanic|freelancer|founder|retiree|beginner"
    r"|vegetarian|vegan|pescatarian|parent|single parent|native \w+ speaker)"
)

_NAME = r"(?P<name>[^\W\d_][\w'-]*(?:\s(?!please|instead|from|not|and|or|if|when)[^\W\d_][\w'-]*){0,2})"
_OFTEN_I = r"(?:usually|normally|typically|generally|always|never|often|rarely|seldom|tend to)"

RULES: tuple[StatementRule, ...] = (
    StatementRule(
        "preference",
        _shape(
            rf"{_PLEASE}(?:you (?:can|may) )?(?P<no>(?:don't|do not|never)\s+)?call me\s+{_NAME}"
            r"(?:,?\s+(?:please|from now on|instead|not \w+|in future))?"
        ),
        _name,
    ),
    StatementRule(
        "preference",
        _shape(
            rf"(?P<asked>{_PLEASE}(?:from now on|in (?:the )?future|going forward)[,\s]+(?:please[,\s]+)?(?P<rest>\w.+)"
            rf"|{_PLEASE}(?:always|never|don't ever|do not ever)\s+(?P<rest2>\w.+))"
        ),
        _asks,
    ),
    StatementRule(
        "preference",
        _shape(r"I\s+(?:(?:much|strongly|really|generally|usually|always)\s+)?prefer\s+(?P<rest>.+)"),
        _says,
    ),
    StatementRule("preference", _shape(r"my preference is\s+(?P<rest>.+)"), _preference),
    StatementRule(
        "preference",
        _shape(
            r"I\s+(?:really\s+)?(?:dislike|hate|can't stand|cannot stand|don't like|do not like)\s+(?P<rest>.+)"
        ),
        _says,
    ),
    StatementRule("preference", _shape(r"I\s+(?:like|love)\s+(?P<rest>.+\s(?:better|more) than\s.+)"), _says),
    StatementRule("habit", _shape(rf"I\s+{_OFTEN_I}\s+(?P<rest>.+)"), _does),
    StatementRule(
        "habit",
        _shape(rf"(?:on\s+{_DAYS}|{_OFTEN}|in the (?:morning|evening)s?),?\s+I\s+(?P<rest>.+)"),
        _does,
    ),
    StatementRule("habit", _shape(rf"I\s+(?P<rest>[a-z]+\s.*(?:{_OFTEN}|\son\s{_DAYS}))"), _does),
    StatementRule(
        "fact", _shape(rf"my\s+(?P<what>{_ATTRIBUTES})\s+(?P<verb>is|are)\s+(?P<rest>.+)"), _attribute
    ),
    StatementRule(
        "fact",
        _shape(rf"my\s+(?P<what>(?:{_RELATIVES})'s\s+(?:{_ATTRIBUTES}))\s+(?P<verb>is|are)\s+(?P<rest>.+)"),
        _attribute,
    ),
    StatementRule("fact", _shape(rf"my\s+(?P<what>{_RELATIVES})\s+(?P<verb>is)\s+(?P<rest>.+)"), _relative),
    StatementRule(
        "fact", _shape(r"I(?:'m| am)\s+(?P<rest>(?:(?:severely|very)\s+)?allergic to\s+.+)"), _says
    ),
    StatementRule(
        "fact",
        _shape(
            r"I(?:'m| am)\s+(?:a\s+)?(?P<rest>(?:strict\s+)?(?:vegetarian|vegan|pescatarian|lactose intolerant"
            r"|coeliac|celiac|diabetic|left-handed|right-handed|colou?r-?blind|deaf|blind|dyslexic|retired"
            r"|\d{1,3} years old))"
        ),
        _says,
    ),
    StatementRule(
        "fact", _shape(rf"I(?:'m| am)\s+(?P<rest>an?\s+{_WORK}(?:\s+(?:at|in|for|from)\s.+)?)"), _says
    ),
    StatementRule("fact", _shape(r"I(?:'m| am)\s+(?P<rest>(?:originally )?from\s+(?-i:[A-Z]).+)"), _says),
    StatementRule(
        "fact",
        _shape(r"I\s+(?P<rest>(?:live in|was born (?:in|on)|grew up in)\s+(?:the\s+)?(?-i:[A-Z\d]).*)"),
        _says,
    ),
    StatementRule("fact", _shape(r"I\s+(?P<rest>work\s+(?:as an?|at|for)\s.+)"), _says),
    StatementRule("fact", _shape(r"I\s+(?P<rest>speak\s+(?-i:[A-Z]).+)"), _says),
    StatementRule(
        "fact",
        _shape(
            r"I\s+(?P<rest>have\s+(?:an?|two|three|four|five|\d+)\s+(?:\w+\s+)?(?:sons?|daughters?|children|kids|brothers?|sisters?|siblings|dogs?|cats?|horses?)\b.*)"
        ),
        _says,
    ),
)
