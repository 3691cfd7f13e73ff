"""Names -> providers, missing extras and keys, prices."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import pytest

from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.openai.provider import OpenAIProvider, OpenAIResponsesProvider
from brainq.adapters.models.vendor_provider import VendorProvider
from brainq.contracts.model import TokenUsage
from brainq.engine.models import ScriptedProvider, known_providers, register_provider, resolve_model, says
from brainq.engine.models.asking.fallback import Fallback
from brainq.engine.models.costs import cost_usd
from brainq.engine.models.providers import Provider, check_model_choice, warm_up_vendors
from brainq.errors import InvalidInput, SetupError
from tests.unit.engine.models.requests import request

VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(
    ("model", "provider", "kind", "name"),
    [
        ("openai:gpt-4.1", None, OpenAIProvider, "gpt-4.1"),
        ("openai-responses:gpt-5", None, OpenAIResponsesProvider, "gpt-5"),
        ("anthropic:claude-x", None, AnthropicProvider, "claude-x"),
        ("openai:llama3:8b", None, OpenAIProvider, "llama3:8b"),
        ("gpt-4.1", "openai", OpenAIProvider, "gpt-4.1"),
        ("openai:gpt-4.1", "openai", OpenAIProvider, "gpt-4.1"),
        ("llama3:8b", "openai", OpenAIProvider, "llama3:8b"),
    ],
)
def test_names(model: str, provider: str | None, kind: type, name: str) -> None:
    found, found_name = resolve_model(model, provider)
    assert isinstance(found, kind)
    assert found_name == name
    assert resolve_model(model, provider)[0] is found


def test_instances() -> None:
    mine = ScriptedProvider([])
    assert resolve_model(mine) == (mine, "scripted")
    assert resolve_model("any", mine) == (mine, "any")


def test_a_changed_environment_makes_a_new_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    before, _ = resolve_model("openai:m")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert resolve_model("openai:m")[0] is not before


def test_vendors_whose_key_is_set_are_warmed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ready: list[str] = []

    def get_ready(provider: VendorProvider) -> None:
        ready.append(provider.name)

    for kind in (OpenAIProvider, AnthropicProvider):
        monkeypatch.setattr(kind, "warm_up", get_ready)
    warm_up_vendors()
    assert ready == []
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    warm_up_vendors()
    assert ready == ["anthropic"]
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    warm_up_vendors()
    assert sorted(ready) == ["anthropic", "anthropic", "openai"]


def test_registered_names() -> None:
    mine = ScriptedProvider([says("x")])
    register_provider("mine", lambda: mine)
    assert resolve_model("mine:m") == (mine, "m")
    assert {"anthropic", "mine", "openai"} <= set(known_providers())
    other = ScriptedProvider([says("y")])
    register_provider("mine", lambda: other)
    assert resolve_model("mine:m") == (other, "m")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("nobody:m", r"is not a known provider \(anthropic, .*write provider:model, such as openai:nobody:m"),
        ("opnai:gpt-4.1", r"did you mean openai:gpt-4\.1\?"),
        ("gpt-4.1", r"did you mean openai:gpt-4\.1\?"),
        ("claude-x", r"did you mean anthropic:claude-x\?"),
        ("mistral", "write provider:model, such as openai:mistral"),
        ("openai:", "model's name is empty"),
        ("", "names no provider"),
    ],
)
def test_bad_names_say_what_would_do(model: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        resolve_model(model)


@pytest.mark.parametrize(
    ("own", "model", "provider", "words"),
    [
        ("openai:a", "gpt-5", None, "did you mean openai:gpt-5?"),
        ("openai:a", "b", "opnai", "did you mean openai?"),
        ("openai:a", None, "opnai", "did you mean openai?"),
        ("openai:a", None, "anthropic", "give the model, too"),
        (ScriptedProvider([]), None, "openai", "give the model, too"),
        ("openai:a", "", "openai", "name is empty"),
    ],
)
def test_a_choice_that_cannot_be_asked(
    own: str | Provider, model: str | None, provider: str | None, words: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(words)):
        check_model_choice(own, model, provider)


@pytest.mark.parametrize(
    ("own", "model", "provider"),
    [
        ("openai:a", None, None),
        ("openai:a", None, "openai"),
        ("openai:a", "anthropic:b", None),
        ("openai:a", "b:8b", "anthropic"),
        (ScriptedProvider([]), "openai:b", None),
    ],
)
def test_a_choice_that_can_be_asked(own: str | Provider, model: str | None, provider: str | None) -> None:
    check_model_choice(own, model, provider)


def test_a_name_with_a_colon_cannot_be_registered() -> None:
    with pytest.raises(InvalidInput, match="without a colon"):
        register_provider("a:b", lambda: ScriptedProvider([]))


@pytest.mark.parametrize(("name", "key"), [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")])
def test_a_missing_key_is_named(name: str, key: str) -> None:
    provider, _ = resolve_model(f"{name}:m")
    with pytest.raises(SetupError, match=key):
        provider.generate(request())


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_missing_extra_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    provider, _ = resolve_model(f"{name}:m")
    with pytest.raises(SetupError, match=rf"brainq\[{name}\]"):
        list(provider.generate_stream(request()))


MILLION = TokenUsage(input_tokens=1_000_000, output_tokens=1_000_000)


def test_known_prices() -> None:
    assert cost_usd("openai", "gpt-4.1", MILLION) == pytest.approx(10.0)  # 2 + 8 dollars
    assert cost_usd("openai", "gpt-4.1", TokenUsage()) == 0
    assert cost_usd("openai-responses", "gpt-4.1", MILLION) == cost_usd("openai", "gpt-4.1", MILLION)


def test_cached_tokens_are_cheaper() -> None:
    cached = MILLION.model_copy(update={"cache_read_tokens": 900_000})
    plain = cost_usd("anthropic", "claude-sonnet-4-6", MILLION)
    cheaper = cost_usd("anthropic", "claude-sonnet-4-6", cached)
    assert plain is not None
    assert cheaper is not None
    assert cheaper < plain


@pytest.mark.parametrize(("provider", "model"), [("openai", "no-such-model"), ("mine", "gpt-4.1")])
def test_unknown_prices_are_looked_for_once(provider: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cost_usd(provider, model, MILLION) is None
    monkeypatch.delattr("brainq.engine.models.costs._price_list")
    assert cost_usd(provider, model, MILLION) is None


def test_counts_that_contradict_each_other_have_a_price() -> None:
    unchecked = TokenUsage(input_tokens=1_000_000).model_copy(update={"cache_read_tokens": 2_000_000})
    assert cost_usd("openai", "gpt-4.1", unchecked) == pytest.approx(1.0)  # all of it was cached, at half a dollar


def _in_thread(work: Callable[[], Any]) -> Any:
    """What `work` returns. A deadlock fails the test instead of hanging the run."""
    found: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=lambda: found.put(work()), daemon=True).start()
    return found.get(timeout=60)


def test_a_factory_may_look_for_other_providers() -> None:
    register_provider("careful", lambda: Fallback(["offline:small", "anthropic:claude-x"]))
    provider, _ = _in_thread(lambda: resolve_model("careful:any"))
    assert isinstance(provider, Fallback)
    assert _in_thread(lambda: resolve_model("careful:any"))[0] is provider


def test_of_two_threads_that_use_a_name_first_at_once_both_get_one_provider() -> None:
    both, closed = threading.Barrier(2), list[object]()

    class Slow(ScriptedProvider):
        def close(self) -> None:
            closed.append(self)

    def make() -> Provider:
        both.wait(60)
        return Slow([])

    register_provider("slow", make)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(resolve_model, ["slow:a", "slow:a"])
    assert first[0] is second[0]
    assert len(closed) == 1
    assert closed[0] is not first[0]
