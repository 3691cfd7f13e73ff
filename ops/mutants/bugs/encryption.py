"""Bugs of content that is encrypted."""

from __future__ import annotations

from ops.mutants.bug import Bug

ENVELOPE = "brainq/store/envelope.py"
UNIT = ("tests/unit/store/test_envelope.py",)
VALUES = ("tests/integration/store/test_reencrypt.py",)

BUGS = (
    Bug(
        "a process goes on with a tenant's key that was removed",
        ENVELOPE,
        "asked_at + self.cache_s",
        "asked_at + 100 * self.cache_s",
        UNIT,
    ),
    Bug(
        "new content is put under a key that is being shredded",
        ENVELOPE,
        'while row is None or row["state"] != "current":',
        "while row is None:",
        UNIT,
    ),
    Bug(
        "a re-encryption brings what is being shredded under a key that stays",
        "brainq/store/reencrypt.py",
        'row["state"] in ("leaving", "shredded")',
        'row["state"] == "shredded"',
        VALUES,
    ),
    Bug(
        "the words of an encrypted memory are in the clear",
        "brainq/store/repositories/knowledge.py",
        '"terms": "" if is_encrypted else',
        '"terms":',
        VALUES,
    ),
)
