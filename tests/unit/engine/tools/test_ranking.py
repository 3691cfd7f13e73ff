"""BM25 over tools."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.tool import ToolSpec
from brainq.engine.tools.ranking import K1, MAX_CACHED_SETS, NAME_WEIGHT, B, Bm25Ranker, SpecCache, singular, words


def spec(name: str, description: str = "", properties: dict[str, Any] | None = None) -> ToolSpec:
    return ToolSpec(name=name, description=description, parameters={"type": "object", "properties": properties or {}})


def best(query: str, specs: Sequence[ToolSpec]) -> str:
    scores = Bm25Ranker().rank(query, specs)
    return specs[scores.index(max(scores))].name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("get_flight_status", ["flight", "status"]),
        ("list-all-airports", ["list", "airport"]),
        ("searchDirectFlight", ["search", "direct", "flight"]),
        ("readHTTPResponse", ["read", "http", "response"]),
        ("The policies of my passes, it's 2 boxes!", ["policy", "pass", "2", "box"]),
        ("Größe ändern", ["größe", "ändern"]),
        ("航班取消", ["航班", "班取", "取消"]),
        ("日x", ["日", "x"]),
        ("yes, please go ahead", ["go", "ahead"]),
        ("", []),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize("word", ["status", "gas", "class", "is", "basis", "flight", "ies"])
def test_what_is_no_plural_is_left_alone(word: str) -> None:
    assert singular(word) == word


def test_the_score_is_the_formula() -> None:
    # given: "flight" is in both tools, "cancel" in one
    specs = [spec("cancel_flight"), spec("flight", "flight times and prices", {"day": {}})]
    # then, by hand: |d| is 6 and 3 + 4 words, of which "flight" counts 3 and 4
    lengths = [2 * NAME_WEIGHT, NAME_WEIGHT + 1 + 3]
    mean = sum(lengths) / 2

    def part(tf: int, length: int, n: int) -> float:
        idf = math.log(1 + (2 - n + 0.5) / (n + 0.5))
        return idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / mean))

    assert Bm25Ranker().rank("Cancel flights, cancel!", specs) == pytest.approx(
        [part(NAME_WEIGHT, lengths[0], 1) + part(NAME_WEIGHT, lengths[0], 2), part(NAME_WEIGHT + 1, lengths[1], 2)]
    )


def test_a_name_weighs_more_than_a_description() -> None:
    specs = [spec("one", "mail letters quickly"), spec("mail", "sends letters quickly")]
    assert best("mail", specs) == "mail"


def test_parameter_names_are_found_at_every_depth() -> None:
    deep = {"trip": {"type": "array", "items": {"type": "object", "properties": {"passengers": {}}}}}
    optional = {"trip": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"luggage": {}}}]}}
    specs = [spec("a"), spec("b", properties=deep), spec("c", properties=optional)]
    assert best("a passenger", specs) == "b"
    assert best("luggage", specs) == "c"


def test_a_parameter_named_properties_is_one() -> None:
    specs = [spec("a"), spec("b", properties={"properties": {"type": "string"}})]
    assert best("property", specs) == "b"


@pytest.mark.parametrize("query", ["", "yes please", "?!", "zebra"])
def test_what_says_nothing_scores_nothing(query: str) -> None:
    assert Bm25Ranker().rank(query, [spec("cancel_flight"), spec("send_mail")]) == [0.0, 0.0]


def test_no_tools_have_no_scores() -> None:
    assert Bm25Ranker().rank("flight", []) == []
    assert Bm25Ranker().rank("flight", [spec("the", "of")]) == [0.0]


@given(st.lists(st.sampled_from(["flight", "mail", "bag", "note"]), min_size=1, max_size=5))
def test_scores_do_not_depend_on_word_order_or_earlier_queries(query: list[str]) -> None:
    specs = [spec("book_flight", "with a bag"), spec("send_mail", "or a note"), spec("read_note")]
    ranker = Bm25Ranker()
    first = ranker.rank(" ".join(query), specs)
    assert all(score >= 0 for score in first)
    assert ranker.rank(" ".join(reversed(query)), specs) == pytest.approx(first)
    assert ranker.rank(" ".join(query), specs) == first
    assert Bm25Ranker().rank(" ".join(query), specs) == first


def test_scores_are_the_same_in_a_process_with_other_hashes() -> None:
    program = (
        "from tests.unit.engine.tools.test_ranking import spec\n"
        "from brainq.engine.tools.ranking import Bm25Ranker\n"
        "specs = [spec('book_flight', 'with a bag'), spec('send_mail', 'or a note'), spec('read_note')]\n"
        "print(Bm25Ranker().rank('note a bag on the flight by mail', specs))\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_the_index_is_built_once_for_the_same_specs() -> None:
    built: list[int] = []
    cache = SpecCache(lambda specs: built.append(len(specs)) or len(built))
    specs = [spec("a"), spec("b")]
    assert [cache.get(specs), cache.get(tuple(specs)), cache.get(specs[:1])] == [1, 1, 2]
    assert built == [2, 1]


def test_the_cache_keeps_the_last_used() -> None:
    built: list[str] = []
    cache = SpecCache(lambda specs: built.append(specs[0].name))
    kept = [spec("kept")]
    cache.get(kept)
    for number in range(3 * MAX_CACHED_SETS):
        cache.get([spec(f"other_{number}")])
        cache.get(kept)
    assert built.count("kept") == 1
    cache.get([spec("other_0")])
    assert built.count("other_0") == 2


def test_threads_build_an_index_together_once() -> None:
    built: list[int] = []
    cache = SpecCache(lambda specs: built.append(len(specs)) or "index")
    specs = [spec("a")]
    barrier = threading.Barrier(8, timeout=30)

    def get() -> None:
        barrier.wait()
        cache.get(specs)

    threads = [threading.Thread(target=get) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert built == [1]
