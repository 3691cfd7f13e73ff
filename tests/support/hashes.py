"""The hash of a call's arguments, for tests that compare it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brainq.engine.gates.canonical import canonical_json, hashes_of


def args_hash(arguments: Mapping[str, Any]) -> str:
    return hashes_of("", canonical_json(arguments))[0]
