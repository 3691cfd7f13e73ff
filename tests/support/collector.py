"""A small OpenTelemetry collector. It accepts OTLP over HTTP and keeps the spans; metrics are dropped."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.spans import SeenSpan, Spans

ERROR = 2  # of a span's status


class Collector:
    """A server that runs until it is closed. `roles` are the processes that sent data, by their `brainq.role`."""

    def __init__(self) -> None:
        self._spans: list[SeenSpan] = []
        self.roles: set[str] = set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.path == "/v1/traces":
                    collector.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def spans(self) -> Spans:
        return Spans(self._spans)

    def take(self, sent: Any) -> None:
        for of_resource in sent.resource_spans:
            about = _attributes(of_resource.resource.attributes)
            self.roles.add(str(about.get("brainq.role")))
            for scope in of_resource.scope_spans:
                self._spans += [_seen(span) for span in scope.spans]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _seen(span: Any) -> SeenSpan:
    return SeenSpan(
        name=span.name,
        trace_id=int.from_bytes(span.trace_id, "big"),
        span_id=int.from_bytes(span.span_id, "big"),
        parent_id=int.from_bytes(span.parent_span_id, "big"),
        attributes=_attributes(span.attributes),
        events=tuple(event.name for event in span.events),
        links=tuple(int.from_bytes(link.span_id, "big") for link in span.links),
        is_error=span.status.code == ERROR,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        found[pair.key] = [item.string_value for item in value.values] if kind == "array_value" else value
    return found
