"""From the first person to the third: "I prefer my tea black" -> "they prefer their tea black". Pure."""

from __future__ import annotations

import re

_FORMS = {
    "i'm": "they're",
    "i am": "they are",
    "am i": "are they",
    "i was": "they were",
    "i've": "they've",
    "i'd": "they'd",
    "i'll": "they'll",
    "i": "they",
    "me": "them",
    "my": "their",
    "mine": "theirs",
    "myself": "themself",
}
_FIRST = re.compile(
    "|".join(rf"\b{form}\b(?!['.]\w)" for form in sorted(_FORMS, key=len, reverse=True)), re.IGNORECASE
)


def of_the_user(text: str) -> str:
    """The text with its first person singular replaced by "they", which asks for no other form of the verb
    than "I" does, but for "am" and "was".

    >>> of_the_user("I am told that I walk my dog")
    'they are told that they walk their dog'
    """
    return _FIRST.sub(lambda found: _FORMS[found.group().lower()], text)
