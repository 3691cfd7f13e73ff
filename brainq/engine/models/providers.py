"""Providers of models: the protocol that they follow, and the registry that finds one by a name such as
`openai:gpt-4.1`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Protocol, TypeVar, runtime_checkable

from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest
from brainq.errors import InvalidInput, SetupError

F = TypeVar("F", bound=Callable[..., Any])
EXTENSIONS = "brainq.models"  # the group of entry points of installed packages that add providers
# A provider made before one of these changed would keep the old key or address.
_ENVIRONMENT = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_CHAT_ROLES", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
_VENDOR_BY_PREFIX = {
    "gpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude": "anthropic",
    "gemini": "google",
}
_lock = threading.Lock()
_instances: dict[str, tuple[tuple[str | None, ...], Provider]] = {}


@runtime_checkable
class Provider(Protocol):
    """A service that answers model requests. One instance is shared by all threads of a process.

    Both methods end within `request.timeout_s` seconds of being called, their own retries included. They raise
    ProviderError if they cannot. Its kinds are:

        timeout       the time ran out
        rate_limited  429, or a limit that is set, and the wait does not fit, or the retries are used up
        limited       the permit comes later than the thread may wait: PermitDeferred
        over_limit    this request alone exceeds what the account may send in a minute; not retryable
        quota         the account is used up; not retryable
        denied        the account, its key or its region may not use this model, or there is none; not retryable
        server        408, 409, 5xx and the like, after the retries
        connection    the service could not be reached, or hung up before it answered anything
        stream        a stream broke off after its first output; a new attempt may be started
        stalled       a stream was silent for too long; a new attempt may be started
        broken        the service could not use the model's output; a new attempt may be started
        malformed     the service did not follow its protocol
        too_long      the request is longer than the model's context
        too_large     the reply grew larger than allowed, and was cut off; not retryable
        filtered      the service refuses this content; not retryable
        refused       any other 4xx; not retryable

    A provider may have more members, which are used if they exist:

        check()         raises SetupError if a key or a package is missing: problem, semicolon, remedy. Quick
        warm_up()       prepares the provider before a deadline runs. Raises SetupError
        close()         closes its connections
        members         the providers that it calls one of, each with its model
        server_url      the address that its requests go to
        takes_permits   True if it takes a permit for each of its requests itself
    """

    @property
    def name(self) -> str:
        """A short word such as `openai`. Together with the model's name it identifies a price."""
        ...

    def generate(self, request: ModelRequest) -> ModelReply:
        """Return the whole reply. Raises ProviderError."""
        ...

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        """Yield text deltas as they come, then exactly one last chunk with `reply`. Raises ProviderError.

        A class that does not derive from Provider may omit this method: its reply then comes as one chunk.

        The time counts from this call, not from the first `next()`. A stream that has shown output is never restarted
        inside: the error goes to the caller, who may begin a new attempt. The caller enforces `first_token_s` and
        `idle_s` of the request if the provider does not.
        """
        ...


def missing_of_provider(given: object) -> tuple[str, ...]:
    """Return the members that an object lacks to be a provider. `generate_stream` is optional, because `chunks_of`
    replaces it."""
    return tuple(name for name in ("name", "generate") if not hasattr(given, name))


def chunks_of(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    """Return the chunks of `generate_stream`. If the provider has none, the reply of `generate` is the only chunk."""
    stream = getattr(provider, "generate_stream", None)
    return iter([ModelChunk(reply=provider.generate(request))]) if stream is None else stream(request)


def keeps_limits(method: F) -> F:
    """Mark a `generate_stream` that enforces `timeout_s`, `first_token_s` and `idle_s` itself. A method that overrides
    it is not marked."""
    setattr(method, "keeps_limits", True)  # noqa: B010 (a function has no such attribute by its type)
    return method


def check_provider(provider: Provider) -> None:
    """Raise SetupError if the provider could not be called. Sends nothing to its service."""
    if (check := getattr(provider, "check", None)) is not None:
        check()


def warm_up(provider: Provider) -> None:
    """Prepare a provider that supports it. Raises SetupError if a key or a package is missing."""
    if (get_ready := getattr(provider, "warm_up", None)) is not None:
        get_ready()


def members_of(provider: Provider) -> Sequence[tuple[Provider, str]]:
    """Return the members of a provider that calls one of several, or () for any other."""
    return getattr(provider, "members", ())


def is_same_service(one: Provider, other: Provider) -> bool:
    """Return whether both are one service, which may see the secrets of either: their names and addresses are the
    same."""
    return (one.name, _server_address(one)) == (other.name, _server_address(other))


def _server_address(provider: Provider) -> str:
    return str(getattr(provider, "server_url", None) or "").rstrip("/")


ProviderFactory = Callable[[], Provider]


@dataclass(frozen=True, slots=True)
class ProviderSource:
    """The way in which a provider is made by name.

    variables: environment variables that the provider reads when it is made. It is made again when one has changed.
    """

    factory: ProviderFactory
    variables: tuple[str, ...] = _ENVIRONMENT


def _vendor(module: str, name: str) -> ProviderSource:
    """Return the source of a provider whose module of `brainq` is imported at the first use."""
    return ProviderSource(lambda: getattr(import_module(f"brainq.{module}"), name)())


_VENDORS = {
    "openai": _vendor("adapters.models.openai.provider", "OpenAIProvider"),
    "anthropic": _vendor("adapters.models.anthropic.provider", "AnthropicProvider"),
}
_sources = {
    **_VENDORS,
    "openai-responses": _vendor("adapters.models.openai.provider", "OpenAIResponsesProvider"),
    "offline": _vendor("engine.models.offline", "offline_model"),
}


@cache
def _find_extensions() -> Mapping[str, ProviderSource]:
    """Return the providers that installed packages add, by name. Each entry point of the group names a dict of them."""
    found: dict[str, ProviderSource] = {}
    for point in entry_points(group=EXTENSIONS):
        found |= point.load()
    return found


def _source(name: str) -> ProviderSource | None:
    with _lock:
        known = _sources.get(name)
    return known or _find_extensions().get(name)


def register_provider(name: str, factory: ProviderFactory) -> None:
    """Add a provider under the name that models use before the colon. An existing name is replaced.

    factory: called once in a process, at the first use. Threads that use the name first at the same moment may each
        call it: one provider is kept, and the others are closed. It may look up other providers by name.
    """
    if not name or ":" in name:
        raise InvalidInput("provider", f"{name!r} is not a provider name; use a word without a colon")
    with _lock:
        _sources[name] = ProviderSource(factory)
        _instances.pop(name, None)


def known_providers() -> tuple[str, ...]:
    """Return the names that can come before the colon, sorted."""
    with _lock:
        return tuple(sorted({*_sources, *_find_extensions()}))


def resolve_model(model: str | Provider, provider: str | Provider | None = None) -> tuple[Provider, str]:
    """Return the provider to call, and the model's name there.

        resolve_model("openai:gpt-4.1")            the named provider; the model's name may contain colons
        resolve_model("gpt-4.1", "openai")         the same
        resolve_model("gpt-4.1", OpenAIProvider(base_url=...))
        resolve_model(ScriptedProvider([...]))     the model has the name of the provider

    Providers made by name are shared by the process. Raises InvalidInput for an unknown name. API keys are needed at
    the first call, not here.
    """
    if not isinstance(model, str):
        return model, model.name
    if provider is None or isinstance(provider, str):
        name, model = split_model(model, provider)
        return _provider_by_name(name), model
    return provider, _with_model_name(model)


def split_model(model: str, provider: str | None = None) -> tuple[str, str]:
    """Return the names of the provider and of the model, as `resolve_model` does, without making a provider.

    Raises InvalidInput, which suggests the likely name if there is one.
    """
    if provider is not None:
        _require_known("provider", provider)
        return provider, _with_model_name(model.removeprefix(f"{provider}:"))
    provider, colon, name = model.partition(":")
    if not colon:
        raise InvalidInput("model", f"{model!r} names no provider; {_guessed_vendor(model)}")
    _require_known("model", provider, f":{name}")
    return provider, _with_model_name(name)


def _require_known(field: str, provider: str, rest: str = "") -> None:
    """Raise InvalidInput if the provider is not known. `rest` is the text that follows its name in `field`."""
    if _source(provider) is not None:
        return
    known = known_providers()
    close = get_close_matches(provider, known, 1)
    guess = _guessed_vendor(f"{provider}{rest}") if rest else "use one of these."
    meant = f"did you mean {close[0]}{rest}?" if close else guess
    raise InvalidInput(
        field,
        f"{provider!r} is not a known provider ({', '.join(known)}); {meant} Add others with "
        "register_provider, before the Brain is made",
    )


def describe_provider(provider: Provider) -> str:
    """Return a description of a provider that was given as an object, for people."""
    if members := members_of(provider):
        return f"{provider.name} of {', '.join(model_reference(*member) for member in members)}"
    return f"{provider.name}, an object of the brain's own"


def model_reference(provider: Provider, model: str) -> str:
    """Return `provider:model`, or only the provider's name if it has no models by name."""
    return model if model == provider.name else f"{provider.name}:{model}"


def check_model_choice(own: str | Provider, model: str | None, provider: str | None) -> None:
    """Raise InvalidInput if a turn's choice of model and provider does not fit its brain, whose model is `own`."""
    if model is not None:
        split_model(model, provider)
    elif provider is not None:
        split_model("any", provider)
        if not isinstance(own, str) or split_model(own)[0] != provider:
            raise InvalidInput(
                "provider", f"{provider!r} is not the provider of the brain's own model; give the model, too"
            )


def provider_name(own: str | Provider, model: str | None, provider: str | None) -> str:
    """Return the name of the provider that a turn with this choice calls, or "" if it is not known here.

    own: the model of the turn's brain.
    """
    chosen = model or own
    if not isinstance(chosen, str):
        return chosen.name
    try:
        return split_model(chosen, provider)[0]
    except InvalidInput:
        return ""


def _with_model_name(model: str) -> str:
    if not model:
        raise InvalidInput("model", "the model's name is empty; write provider:model, such as openai:gpt-4.1")
    return model


def _guessed_vendor(model: str) -> str:
    for begins, vendor in _VENDOR_BY_PREFIX.items():
        if model.startswith(begins):
            return f"did you mean {vendor}:{model}?"
    return f"write provider:model, such as openai:{model or 'gpt-4.1'}."


def warm_up_vendors() -> None:
    """Import the SDKs of all vendors whose key is set, and make their clients. This takes seconds of CPU.

    A turn may name another provider than its brain does. The time spent here is not taken from that turn.
    """
    for name in _VENDORS:
        with suppress(SetupError):
            provider = _provider_by_name(name)
            check_provider(provider)
            warm_up(provider)


def _provider_by_name(name: str) -> Provider:
    source = _source(name)
    assert source is not None, name
    environment = tuple(os.environ.get(variable) for variable in source.variables)
    with _lock:
        made = _instances.get(name)
    if made is not None and made[0] == environment:
        return made[1]
    # Outside the lock: a factory is a user's code, and may look up other providers.
    provider = source.factory()
    with _lock:
        made = _instances.get(name)
        is_first = made is None or made[0] != environment
        if is_first and _sources.get(name, source) is source:
            _instances[name] = (environment, provider)
    if made is None or is_first:
        return provider
    if (close := getattr(provider, "close", None)) is not None:
        close()
    return made[1]
