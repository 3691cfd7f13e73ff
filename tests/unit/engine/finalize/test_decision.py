"""Which strategy a turn's tools make, where several match."""

from __future__ import annotations

import pytest

from brainq.engine.finalize.result import strategy_of


@pytest.mark.parametrize(
    ("tools", "strategy"),
    [
        ([], "direct_answer"),
        (["read_note"], "tool_assisted"),
        (["local_search", "read_note"], "retrieval_augmented"),
        (["read_note", "get_context_pack"], "retrieval_augmented"),
        (["get_context_pack", "local_search", "read_note", "web_search"], "web_augmented"),
    ],
)
def test_the_web_comes_before_retrieval_and_retrieval_before_other_tools(tools: list[str], strategy: str) -> None:
    assert strategy_of(tools) == strategy_of(reversed(tools)) == strategy
