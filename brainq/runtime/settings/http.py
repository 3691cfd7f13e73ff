"""The settings of the gateway (`BRAINQ_HTTP_...`), which are part of Settings."""

from __future__ import annotations

import ipaddress
import re

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

_HOOK = re.compile(r"([A-Za-z_][\w.]*:[A-Za-z_]\w*)?", re.ASCII)
_URL = re.compile(r"(https?://[^\s,]*[^\s,/])?")
_ORIGIN = re.compile(r"https?://[^/\s,]+")


class HttpSettings(BaseSettings):
    """The settings of the gateway. Limits apply to each gateway separately: two gateways allow twice as much."""

    http_host: str = Field(default="127.0.0.1", min_length=1)
    """The address to listen on. On an address other than loopback, callers need tokens or `http_auth`."""

    http_port: int = Field(default=8321, ge=1, le=65535)

    http_auth: str = ""
    """`module:function` of a function that authenticates callers. It gets the headers and returns a Caller, or None."""

    http_hosts: str = ""
    """The accepted host names, separated by commas. If empty, all are accepted; on loopback without authentication,
    only loopback names are."""

    http_cors: str = ""
    """The allowed origins, separated by commas, such as `https://shop.example`. If empty, only its own."""

    http_proxies: str = ""
    """The addresses or networks of trusted proxies, separated by commas, whose `X-Forwarded-For` is used."""

    http_a2a: str = ""
    """The public address for A2A agents, such as `https://agents.example`, which the agent cards contain. If empty, A2A
    is off. Needs the extra `a2a`."""

    http_mcp: bool = True
    """Whether the brains are available as tools for MCP clients at `/mcp`. Needs the extra `mcp`."""

    http_body_bytes: int = Field(default=4_000_000, ge=1_000, le=100_000_000)
    http_slow_s: float = Field(default=20.0, gt=0, le=600)
    """The seconds that a client has to send a request or to read a response."""

    http_openai_lenient: bool = False
    """Whether unknown parameters of OpenAI requests, such as `top_k`, are ignored instead of refused."""

    http_client_tools_s: float = Field(default=900.0, gt=0, le=86_400)
    """The seconds that a call of a client's own tool waits for its result (AI SDK, AG-UI, and OpenAI clients without a
    session). After that the turn is cancelled."""

    http_wait_s: float = Field(default=60.0, ge=0, le=3600)
    """The longest wait of `Prefer: wait`."""

    http_requests_s: float = Field(default=50.0, gt=0, le=100_000)
    """The requests per second of one caller. After a pause, a burst may be ten times as large."""

    http_streams: int = Field(default=2_000, ge=1, le=100_000)
    http_streams_a_caller: int = Field(default=500, ge=1, le=100_000)
    http_heartbeat_s: float = Field(default=15.0, gt=0, le=600)
    http_grace_s: float = Field(default=10.0, gt=0, le=600)
    """The seconds that running requests have to end when the gateway stops."""

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
    """Split a setting that is separated by commas."""
    return [part.strip() for part in value.split(",") if part.strip()]
