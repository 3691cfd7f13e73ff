"""`brainq serve`: turns over HTTP."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from brainq.cli.options import App, Level, LogLevel

PORT = 8321
LOOPBACK = "127.0.0.1"


def serve(
    host: Annotated[
        str,
        typer.Option(
            "--host",
            help="On which address (BRAINQ_HTTP_HOST); but for loopback callers need tokens, or BRAINQ_HTTP_AUTH.",
            show_default=LOOPBACK,
        ),
    ] = "",
    port: Annotated[
        int | None,
        typer.Option("--port", min=1, max=65535, help="Where (BRAINQ_HTTP_PORT).", show_default=str(PORT)),
    ] = None,
    level: LogLevel = Level.INFO,
    app: App = "",
) -> None:
    """Run the gateway: turns over HTTP, for any language. Programs submit, follow and steer them.

    On 127.0.0.1 nobody is asked who he is until a token is made. `brainq token create` makes one; from then on
    every request brings one. On any other --host nobody is let in before. An app with users of its own says who
    asks: BRAINQ_HTTP_AUTH=module:function. SIGTERM tells open streams to come again, at this or another gateway,
    and they go on where they were. GET /v1/openapi.json describes all routes; docs/http.md shows them.

    \b
    Examples:
      brainq serve
      brainq serve -A shop.agent:brain --port 8080
      brainq token create web --sessions '*' --verb read --verb submit && brainq serve --host 0.0.0.0
    \b
    Then, from anywhere that reaches it:
      curl -d '{"session_id": "s1", "user_message": "count apples"}' \\
           -H 'Content-Type: application/json' -H 'Prefer: wait=30' http://127.0.0.1:8321/v1/turns
      curl -N http://127.0.0.1:8321/v1/turns/TURN/events
    """
    require_http()
    from brainq.cli.reach import share_redis
    from brainq.cli.starting import ready_to_start
    from brainq.devserver.probe import require_free_port
    from brainq.settings import load_settings

    settings = load_settings()
    os.environ["BRAINQ_HTTP_HOST"] = host or settings.http_host
    os.environ["BRAINQ_HTTP_PORT"] = str(port or settings.http_port)
    os.environ.setdefault("BRAINQ_LOG_LEVEL", level.value)
    require_free_port(host or settings.http_host, port or settings.http_port, "the gateway", "--port")
    ready_to_start(load_settings(), redis_url=share_redis())
    os.execv(sys.executable, gateway_command())


def gateway_command() -> list[str]:
    """The command of the gateway, which takes all it is told from the environment."""
    return [sys.executable, "-m", "brainq.workers.gateway"]


def require_http() -> None:
    """Raise SetupError where the extra is missing."""
    if not has_http():
        from brainq.errors import SetupError

        raise SetupError(
            "the gateway needs FastAPI and uvicorn, which are not here; pip install 'brainq[http]'"
        )


def has_http() -> bool:
    return all(find_spec(module) for module in ("fastapi", "uvicorn"))
