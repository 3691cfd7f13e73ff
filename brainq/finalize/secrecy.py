"""Text that must not be remembered: passwords, keys, numbers of cards and accounts. Pure.

Errs to one side on purpose: a memory left out costs little, a password that comes up in a later prompt does. It knows
words and looks; a secret without either passes.
"""

from __future__ import annotations

import re

_WORD = re.compile(
    r"\b(?:pass(?:word|phrase|code|wd)s?|pwd|pin|secrets?|credentials?|cvv|cvc|ssn|social security|iban|otp|2fa"
    r"|(?:api|access|private|secret|encryption|licen[cs]e|ssh|recovery|signing)[\s_-]*(?:keys?|tokens?|codes?)"
    r"|(?:auth|bearer|refresh|session|security)[\s_-]*(?:tokens?|codes?)|(?:credit|debit|bank) card"
    r"|(?:card|account) number|seed phrase)\b",
    re.IGNORECASE,
)
# Beginnings that services give their keys so that scanners find them, and a password inside a URL.
_KEY = re.compile(
    r"\b(?:sk|pk|rk)[-_]\w{3,}|\bgh[pousr]_\w{10,}|\bgithub_pat_|\bglpat-|\bA(?:KIA|SIA)[0-9A-Z]{12,}|\bAIza[\w-]{20,}"
    r"|\bxox[abprs]-|\beyJ[\w-]{8,}\.|-----BEGIN |\b\w{1,20}://[^\s/@:]{0,200}:[^\s/@]{1,200}@"
)
# Cards, accounts, social security.
_NUMBER = re.compile(r"\d(?:[ -]?\d){12,}|\b\d{3}-\d{2}-\d{4}\b|\b[A-Z]{2}\d{2}(?: ?[0-9A-Z]{4}){3,}")
_URL = re.compile(r"\b\w{1,20}://\S+|\bwww\.\S+")
_TOKEN = re.compile(r"[^\s,;:=\"'`()<>\[\]{}]{8,}")
_LONG = 20


def looks_secret(text: str) -> bool:
    """Whether the text names, holds or resembles a password, a key, or the number of a card or an account."""
    if _WORD.search(text) or _KEY.search(text) or _NUMBER.search(text):
        return True
    return any(_is_random(token.strip(".!?")) for token in _TOKEN.findall(_URL.sub(" ", text)))


def _is_random(token: str) -> bool:
    """Long with letters and digits mixed, or short with three kinds of characters, as in `Tr0ub4dor&3`."""
    letters, digits = sum(map(str.isalpha, token)), sum(map(str.isdigit, token))
    if len(token) >= _LONG:
        return letters >= 4 and digits >= 4
    odd = sum(not char.isalnum() and char not in "-_./@+'%" for char in token)
    return letters >= 3 and digits >= 1 and odd >= 1
