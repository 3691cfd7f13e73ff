"""What is checked of a selection when a worker starts."""

from __future__ import annotations

import importlib.util

import pytest

from brainq.contracts.brain import Selection
from brainq.engine.tools.ranking import require_ranking
from brainq.errors import InvalidInput, SetupError


def test_a_pinned_tool_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"selection\.pinned.*hand_ovr"):
        require_ranking(Selection(pinned=("hand_ovr",)), {"hand_over"})
    require_ranking(Selection(pinned=("hand_over",)), {"hand_over"})
    require_ranking(None, ())


def test_a_missing_extra_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nothing)
    with pytest.raises(SetupError, match=r"numpy.*pip install 'brainq\[embeddings\]'"):
        require_ranking(Selection(ranking="embedding"), ())
