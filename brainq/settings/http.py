"""Settings of the gateway (`BRAINQ_HTTP_...`). Settings has these among its own."""

from __future__ import annotations

import ipaddress
import re

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

_HOOK = re.compile(r"([A-Za-z_][\w.]*:[A-Za-z_]\w*)?", re.ASCII)
_URL = re.compile(r"(https?://[^\s,]*[^\s,/])?")
_ORIGIN = re.compile(r"https?://[^/\s,]+")


class HttpSettings(BaseSettings):
    """Each limit is one gateway's own: two gateways let through twice as much."""

    http_host: str = Field(default="127.0.0.1", min_length=1)
    """Where it listens. Elsewhere than on loopback callers need tokens, or a hook says who asks."""

    http_port: int = Field(default=8321, ge=1, le=65535)

    http_auth: str = ""
    """`module:function`, your own way to say who asks: it takes the headers and gives a Caller, or None."""

    http_hosts: str = ""
    """Host names it answers to, with commas. Empty: any, but on loopback without a login those of loopback only."""

    http_cors: str = ""
    """Origins whose pages may ask, with commas, such as `https://shop.example`. Empty: none but its own."""

    http_proxies: str = ""
    """Addresses or networks of proxies, with commas, that are believed whom they ask for (`X-Forwarded-For`)."""

    http_a2a: str = ""
    """Where agents that speak A2A reach the gateway, such as `https://agents.example`; its cards say so. Empty: A2A is
    off. Needs the extra `a2a`."""

    http_mcp: bool = True
    """Whether brains are tools for MCP clients at `/mcp`. Needs the extra `mcp`."""

    http_body_bytes: int = Field(default=4_000_000, ge=1_000, le=100_000_000)
    http_slow_s: float = Field(default=20.0, gt=0, le=600)
    """How long a client may take to send a request, or to read what it was sent."""

    http_openai_lenient: bool = False
    """Whether parameters of OpenAI's wire that are not known here, such as `top_k`, are left out instead of refused."""

    http_client_tools_s: float = Field(default=900.0, gt=0, le=86_400)
    """How long a call of a client's own tool waits for its result: of the AI SDK, of AG-UI, and of an OpenAI client
    that named no session. The turn is cancelled then."""

    http_wait_s: float = Field(default=60.0, ge=0, le=3600)
    """The longest that `Prefer: wait` is obeyed."""

    http_requests_s: float = Field(default=50.0, gt=0, le=100_000)
    """Requests a second of one caller, who may ask ten times as many at once after a pause."""

    http_streams: int = Field(default=2_000, ge=1, le=100_000)
    http_streams_a_caller: int = Field(default=500, ge=1, le=100_000)
    http_heartbeat_s: float = Field(default=15.0, gt=0, le=600)
    http_grace_s: float = Field(default=10.0, gt=0, le=600)
    """How long requests have to end when the gateway stops."""

    @field_validator("http_auth")
    @classmethod
    def _hook_names_a_function(cls, value: str) -> str:
        if not _HOOK.fullmatch(value):
            raise ValueError("must be `module:function`, such as `shop.web:authenticate`")
        return value

    @field_validator("http_a2a")
    @classmethod
    def _a2a_is_reached_somewhere(cls, value: str) -> str:
        if not _URL.fullmatch(value):
            raise ValueError("must be an address without a slash at its end, such as `https://agents.example`")
        return value

    @field_validator("http_cors")
    @classmethod
    def _cors_names_origins(cls, value: str) -> str:
        wrong = [origin for origin in split_list(value) if not _ORIGIN.fullmatch(origin)]
        if wrong:
            raise ValueError("must be origins with commas, such as `https://shop.example,http://localhost:3000`")
        return value

    @field_validator("http_proxies")
    @classmethod
    def _proxies_are_addresses(cls, value: str) -> str:
        for proxy in split_list(value):
            try:
                ipaddress.ip_network(proxy)
            except ValueError:
                raise ValueError("must be addresses or networks with commas, such as `10.0.0.7,10.1.0.0/16`") from None
        return value


def split_list(value: str) -> list[str]:
    """The parts of a setting that is a list with commas."""
    return [part.strip() for part in value.split(",") if part.strip()]
