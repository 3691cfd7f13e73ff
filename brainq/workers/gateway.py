"""The gateway, which serves turns over HTTP: `brainq serve`, or `python -m brainq.workers.gateway`.

The settings BRAINQ_HTTP_... configure it.
"""

from __future__ import annotations

import sys

from brainq.app.devserver.redis_server import known_redis
from brainq.engine.brain.brains import load_brains
from brainq.errors import BrainqError, kind_of
from brainq.gateway.edge.authentication import Authenticator
from brainq.gateway.server import serve
from brainq.runtime.observe.logs import configure_logs, outlive_full_log
from brainq.runtime.processes.supervised import follow_owner, inherited_listener, mark_ready
from brainq.runtime.settings.deployment import Settings, load_settings, settings_here


def main() -> None:
    """Serve until SIGTERM or Ctrl+C."""
    outlive_full_log()
    follow_owner()
    settings = settings_here()
    configure_logs(settings.log_level, json_lines=settings.log_format == "json")
    url = known_redis(settings)
    settings = load_settings(redis_url=url)
    listener = inherited_listener()
    serve(settings, load_brains(settings.app), lambda who: _ready(settings, who), listener)


def _ready(settings: Settings, who: Authenticator) -> None:
    host = f"[{settings.http_host}]" if ":" in settings.http_host else settings.http_host
    print(f"brainq serves http://{host}:{settings.http_port}; {who.description}", flush=True)
    mark_ready()


if __name__ == "__main__":
    try:
        main()
    except BrainqError as error:
        print(f"brainq: {error}", file=sys.stderr)
        sys.exit(kind_of(error).exit)
    except KeyboardInterrupt:
        sys.exit(0)
