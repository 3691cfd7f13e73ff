"""`brainq metrics`: what Prometheus reads, printed, or served where there is no gateway."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import App


def metrics(
    port: Annotated[
        int | None,
        typer.Option(
            "--serve",
            min=1,
            max=65535,
            metavar="PORT",
            help="Serve them on this port of 127.0.0.1, at /metrics, until Ctrl+C.",
        ),
    ] = None,
    app: App = "",
) -> None:
    """Print the metrics of the whole fleet in Prometheus' text format.

    The gateway has the same at /metrics, for tokens with the verb `metrics`. Use --serve where there is no gateway,
    or where Prometheus is to see how things are while SQL is away, which knows the tokens. It asks nobody who he is,
    so it serves this machine alone.

    \b
    Examples:
      brainq metrics
      brainq metrics --serve 9464
    """
    from brainq.cli.output import say, stdout
    from brainq.cli.reach import operator

    with operator() as client:
        if port is None:
            stdout().file.write(client.metrics())
            return
        from brainq.cli.metrics_server import serve_metrics

        say(f"metrics at http://127.0.0.1:{port}/metrics")
        serve_metrics(client.metrics, port)
