"""Provider: what a language model's service offers, and what it may offer besides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest

F = TypeVar("F", bound=Callable[..., Any])


@runtime_checkable
class Provider(Protocol):
    """One service that answers model requests. One instance is shared by all threads of a process.

    Both methods end within `request.timeout_s` seconds of being called, their own retries included, and
    raise ProviderError when they cannot. Kinds:

        timeout       the time ran out
        rate_limited  429, or a limit that is set, and the wait does not fit, or retries ran out
        limited       its place among the requests of a minute comes later than its thread may be held: PermitDeferred
        quota         429 because the account is used up; not retryable
        server        408, 409 or 5xx after the retries
        connection    the service could not be reached, or hung up before it answered anything
        stream        a stream broke off after its first output; a new attempt may be started
        stalled       a stream was silent for too long; a new attempt may be started
        malformed     the service sent something that is not its protocol
        too_long      the request is longer than the model's context
        refused       any other 4xx

    A provider may have more, which is used where it is there:

        check()         raises SetupError if a key or a package is missing: what, a semicolon, and the remedy. Quick
        warm_up()       gets ready before a deadline runs. Raises SetupError
        close()         closes its connections
        members         the providers that it asks one of, each with its model
        server_url      where its requests go
        takes_permits   True: it takes a permit for each of its requests
    """

    @property
    def name(self) -> str:
        """A short word such as `openai`; with the model's name it identifies a price."""
        ...

    def generate(self, request: ModelRequest) -> ModelReply:
        """The whole reply. Raises ProviderError."""
        ...

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        """Text deltas as they come, then exactly one last chunk with `reply`. Raises ProviderError.

        The time counts from this call, not from the first `next()`. A stream that has shown output is
        never restarted inside: the error goes to the caller, who may begin a new attempt. `first_token_s` and
        `idle_s` of the request are held by the caller where a provider does not hold them itself.
        """
        ...


def keeps_limits(method: F) -> F:
    """Marks a `generate_stream` that holds `timeout_s`, `first_token_s` and `idle_s` itself. One that overrides it
    does not carry the mark."""
    setattr(method, "keeps_limits", True)  # noqa: B010 (a function has no such attribute by its type)
    return method


def check_provider(provider: Provider) -> None:
    """Raise SetupError if the provider could not be asked, without asking its service."""
    if (check := getattr(provider, "check", None)) is not None:
        check()


def warm_up(provider: Provider) -> None:
    """Effect: let a provider that can do so get ready. Raises SetupError if a key or a package is missing."""
    if (get_ready := getattr(provider, "warm_up", None)) is not None:
        get_ready()


def members_of(provider: Provider) -> Sequence[tuple[Provider, str]]:
    """The members of a provider that asks one of several; () of any other."""
    return getattr(provider, "members", ())


def is_same_service(one: Provider, other: Provider) -> bool:
    """Whether both are one service, which may see what is meant for either: one name, and one `server_url` if they
    have that."""
    return (one.name, _server_address(one)) == (other.name, _server_address(other))


def _server_address(provider: Provider) -> str:
    return str(getattr(provider, "server_url", None) or "").rstrip("/")
