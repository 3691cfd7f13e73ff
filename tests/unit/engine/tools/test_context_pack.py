"""The context pack: read, merged with what memory knows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainq.contracts.memory import RetrievedMemory
from brainq.engine.tools.context_pack import merge_preferences, pack_json, read_pack

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ENTRIES = st.lists(st.sampled_from(["Short answers", "short  ANSWERS", "No meat", " no meat ", ""]) | JSON, max_size=6)
SAID = st.lists(st.sampled_from(["Short answers", "NO MEAT", "Rises early", "rises  early", " "]), max_size=4)


def memory(preferences: list[str] | None = None, habits: list[str] | None = None) -> RetrievedMemory:
    return RetrievedMemory(preferences=tuple(preferences or ()), habits=tuple(habits or ()))


@pytest.mark.parametrize(
    ("text", "pack"),
    [
        ('{"a": [1, "x"]}', {"a": [1, "x"]}),
        ("", {}),
        (" \n", {}),
        ("plain words", {"text": "plain words"}),
        ("[1, 2]", {"text": "[1, 2]"}),
        ('{"a": ', {"text": '{"a": '}),
        ('{"a": NaN}', {"a": "NaN"}),
        ("[" * 100_000, {"text": "[" * 100_000}),
        ('{"a": 1e999}', {"text": '{"a": 1e999}'}),
        ('{"a": ' + "[" * 5_000 + "]" * 5_000 + "}", {"text": '{"a": ' + "[" * 5_000 + "]" * 5_000 + "}"}),
        ("9" * 5000, {"text": "9" * 5000}),
    ],
)
def test_reading(text: str, pack: dict[str, Any]) -> None:
    assert read_pack(text) == pack


@pytest.mark.parametrize(
    ("pack", "found", "merged"),
    [
        ({}, memory(), {}),
        ({"facts": 1}, memory(), {"facts": 1}),
        ({"preferences": []}, memory(), {"preferences": []}),
        ({}, memory(["Tea"], ["Walks"]), {"preferences": ["Tea", "Walks"]}),
        (
            {"preferences": ["No  meat", {"diet": 1}, "Tea"], "facts": 1},
            memory(["tea ", "NO meat"], ["Walks", "walks"]),
            {"preferences": ["No  meat", {"diet": 1}, "Tea", "Walks"], "facts": 1},
        ),
        ({"preferences": "Tea"}, memory(["Walks"]), {"preferences": ["Tea", "Walks"]}),
        ({"preferences": None}, memory(["Walks"]), {"preferences": ["Walks"]}),
        ({"preferences": {"a": 1}}, memory(["Walks"]), {"preferences": [{"a": 1}, "Walks"]}),
    ],
)
def test_merging(pack: dict[str, Any], found: RetrievedMemory, merged: dict[str, Any]) -> None:
    assert merge_preferences(pack, found) == merged


@settings(deadline=None)  # other tests share the machine
@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3), ENTRIES, SAID, SAID)
def test_merge_rules(rest: dict[str, Any], own: list[Any], preferences: list[str], habits: list[str]) -> None:
    pack = rest | {"preferences": own}
    before = json.dumps(pack)
    merged = merge_preferences(pack, memory(preferences, habits))
    assert json.dumps(pack) == before, "the pack given is not changed"
    assert {key: value for key, value in merged.items() if key != "preferences"} == {
        key: value for key, value in rest.items() if key != "preferences"
    }
    entries: list[Any] = merged["preferences"]
    keys = [" ".join(entry.casefold().split()) for entry in entries if isinstance(entry, str)]
    assert len(keys) == len(set(keys)), "no string twice"
    others = [entry for entry in entries if not isinstance(entry, str)]
    assert others == [entry for entry in own if not isinstance(entry, str)], "other entries stay"
    every = [*own, *(text.strip() for text in (*preferences, *habits))]
    rest_of = iter(every)
    assert all(any(one == entry for one in rest_of) for entry in entries), "the order is kept"
    for text in (*preferences, *habits):
        assert not text.strip() or " ".join(text.casefold().split()) in keys, "nothing found is lost"
    assert merge_preferences(merged, memory(preferences, habits)) == merged, "merging again adds nothing"


def test_one_text_for_equal_packs() -> None:
    assert pack_json({"b": 1, "a": ["é", "\ud800"]}) == '{"a":["é","\ufffd"],"b":1}'
    with pytest.raises(ValueError, match="JSON"):
        pack_json({"a": object()})
    with pytest.raises(ValueError, match="JSON"):
        pack_json({"a": float("nan")})


@settings(deadline=None)  # other tests share the machine
@given(st.dictionaries(st.text(), JSON))
def test_a_pack_survives_its_text(pack: dict[str, Any]) -> None:
    text = pack_json(pack)
    assert text.encode()
    assert pack_json(read_pack(text)) == text
