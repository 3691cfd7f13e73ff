"""Text that must not be remembered: passwords, keys, numbers of cards and accounts. Pure.

Errs to one side on purpose: a memory left out costs little, a password that comes up in a later prompt does.
"""

from __future__ import annotations

import math
import re
from collections import Counter

# Words that announce a secret. `token` and `key` alone are everyday words in a conversation about software.
_SECRET_WORD = re.compile(
    r"\b(?:pass(?:word|phrase|code|wd)s?|pwd|pin(?:\s+(?:code|number))?|secrets?|credentials?|cvv|cvc"
    r"|(?:api|access|private|secret|encryption|licen[cs]e|ssh|recovery|backup|signing)[\s_-]*(?:keys?|tokens?|codes?)"
    r"|(?:auth|bearer|refresh|session|security)[\s_-]*(?:tokens?|codes?)|ssn|social security"
    r"|(?:credit|debit|bank)\s+card|card number|account number|iban|sort code|seed phrase|one[- ]time code|otp|2fa)\b",
    re.IGNORECASE,
)
# Beginnings that services give their keys so that scanners find them.
_KNOWN_KEY = re.compile(
    r"\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)?[-_]?\w{8,}|\bgh[pousr]_\w{10,}|\bgithub_pat_\w+|\bglpat-\S{8,}"
    r"|\bA(?:KIA|SIA)[0-9A-Z]{12,}|\bAIza[\w-]{20,}|\bxox[abprs]-\S{8,}|\beyJ[\w-]{8,}\.[\w-]+|-----BEGIN "
)
_URL_PASSWORD = re.compile(r"\b\w{1,20}://[^\s/@:]{0,200}:[^\s/@]{1,200}@")
_SSN = re.compile(r"\b\d{3}-\d{2}-\d{4}\b")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[0-9A-Z]{4}){2,7}(?: ?[0-9A-Z]{1,4})?\b")
_DIGITS = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.])")
_TOKEN = re.compile(r"[^\s,;:=\"'`()<>\[\]{}]{8,}")
_URL = re.compile(r"\b\w{1,20}://\S+|\bwww\.\S+")
_LONG = 20
_DENSE_BITS = (
    3.0  # bits a character; a hex string of 20 has about 3.5, English words stay below when so short
)


def looks_secret(text: str) -> bool:
    """Whether the text names, holds or resembles a password, a key, or the number of a card or an account."""
    if _SECRET_WORD.search(text) or _KNOWN_KEY.search(text) or _URL_PASSWORD.search(text):
        return True
    if _SSN.search(text) or _IBAN.search(text):
        return True
    if any(is_card_number(found.group()) for found in _DIGITS.finditer(text)):
        return True
    return any(_is_dense(token) for token in _TOKEN.findall(_URL.sub(" ", text)))


def is_card_number(text: str) -> bool:
    """13 to 19 digits whose check digit is right by the Luhn formula (ISO/IEC 7812-1, annex B).

    >>> is_card_number("4111 1111 1111 1111"), is_card_number("4111 1111 1111 1112")
    (True, False)
    """
    digits = [int(char) for char in text if char.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return 13 <= len(digits) <= 19 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_dense(token: str) -> bool:
    """Random by its look: long with letters and digits mixed and a high entropy, or short with three kinds of
    characters inside one word, as in `Tr0ub4dor&3`."""
    token = token.strip(".!?")
    letters = sum(char.isalpha() for char in token)
    digits = sum(char.isdigit() for char in token)
    if len(token) >= _LONG:
        return letters >= 4 and digits >= 4 and _entropy_bits(token) >= _DENSE_BITS
    odd = sum(not char.isalnum() and char not in "-_./@+\N{RIGHT SINGLE QUOTATION MARK}" for char in token)
    return letters >= 3 and digits >= 1 and odd >= 1 and "%" not in token


def _entropy_bits(token: str) -> float:
    """Shannon entropy a character, in bits."""
    counts = Counter(token)
    return -sum(n / len(token) * math.log2(n / len(token)) for n in counts.values())
