"""Whether spans go out, and where to, by the standard's variables; and what becomes of a process that stops."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.util._once import Once

from brainq.cli.doctor.setup import check_traces
from brainq.runtime.observe import otel_setup, threads
from brainq.runtime.observe.otel_setup import captures_content, resource_of, start_traces, traces_exporter
from brainq.runtime.observe.tracing import TurnTracer, record_spans, tracer


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    yield
    record_spans(None)


@pytest.mark.parametrize(
    ("said", "exporter", "where"),
    [
        ({}, "none", ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}, "otlp", "http://c:4318/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/x"}, "otlp", "http://c:4318/x"),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp", "http://localhost:4318/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "c:4318"}, "otlp", "http://c:4318/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost"}, "otlp", "http://localhost/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "[::1]:4318"}, "otlp", "http://[::1]:4318/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/v1/traces"}, "otlp", "http://c:4318/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c/otlp/v1/metrics/"}, "otlp", "https://c/otlp/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "HTTPS://c/otlp"}, "otlp", "HTTPS://c/otlp/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "c:4318/x"}, "otlp", "http://c:4318/x"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console", ""),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, "none", ""),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, "none", ""),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "none", ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "none", ""),
    ],
)
def test_what_the_environment_wants(said: dict[str, str], exporter: str, where: str) -> None:
    wanted = traces_exporter(said)
    assert (wanted.exporter, wanted.where) == (exporter, where)
    assert wanted.why


@pytest.mark.parametrize(
    "address",
    [
        *("grpc://c:4317", "tcp://c:4318", "unix:///run/c", "file:///c", "http://", "http://:4318", "http://c:port"),
        *("http://c:0", '"http://c:4318"', "http://c d:4318", "://c"),
    ],
)
@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
def test_an_address_to_which_nothing_can_be_sent_is_named_with_what_to_set(
    variable: str, address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = traces_exporter({variable: address})
    assert (wanted.exporter, wanted.remedy) == ("none", f"set {variable}=http://HOST:4318")
    assert wanted.why.startswith(f"{variable}: ")
    monkeypatch.setenv(variable, address)
    start_traces("coordinator")()
    assert "no traces are sent" in caplog.text
    found = check_traces()
    assert (found.level, found.remedy) == ("warn", wanted.remedy)


def test_what_stops_is_waited_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otel_setup, "STOP_S", 60.0)
    both = threading.Barrier(2)

    def meet() -> None:
        both.wait(60)

    otel_setup.stop_telemetry([meet, meet])
    assert not both.broken
    clock, waits = [0.0], list[float]()

    def hang(wait_s: float) -> None:
        waits.append(wait_s)
        clock[0] += wait_s

    def start(*_: object) -> object:
        return SimpleNamespace(join=hang)

    monkeypatch.setattr(threads, "start_thread", start)
    monkeypatch.setattr(otel_setup, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    otel_setup.stop_telemetry([otel_setup.do_nothing] * 3)
    assert waits == [60.0, 0.0, 0.0]


def test_content_is_asked_for_by_the_conventions_switch() -> None:
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    assert [captures_content({name: said}) for said in ("true", "SPAN_ONLY", "span_and_event")] == [True] * 3
    assert [captures_content({name: said}) for said in ("", "false", "event_only")] == [False] * 3
    assert not captures_content({})


def test_nobody_records_unless_asked_to() -> None:
    start_traces("coordinator")()
    assert tracer() is None


def test_the_applications_own_provider_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    trace.set_tracer_provider(provider)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    start_traces("coordinator")()
    assert isinstance(tracer(), TurnTracer)
    assert trace.get_tracer_provider() is provider


def test_a_missing_extra_stops_nothing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(otel_setup, "is_installed", lambda: False)
    start_traces("coordinator")()
    assert tracer() is None
    assert "pip install 'brainq[otel]'" in caplog.text


def test_what_is_still_to_be_sent_goes_out_at_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[bytes] = []
    monkeypatch.setattr(otel_setup, "STOP_S", 60.0)

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
        stop = start_traces("coordinator")
        found = tracer()
        assert found is not None
        found.start("one", {}).end()
        assert got == []
        stop()
        server.shutdown()
        thread.join()
    assert b"one" in got[0]


def test_a_service_is_named_by_the_environment_first(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = resource_of("coordinator").attributes
    assert (ours["service.name"], ours["brainq.role"]) == ("brainq", "coordinator")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    assert resource_of("coordinator").attributes["service.name"] == "shop"
    monkeypatch.delenv("OTEL_SERVICE_NAME")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=store,deployment.environment.name=x")
    found = resource_of("coordinator").attributes
    assert (found["service.name"], found["deployment.environment.name"]) == ("store", "x")


def test_without_telemetry_nothing_of_the_sdk_is_imported() -> None:
    """What submits and works on turns needs the API alone. Importing brainq, and its command line, not even that."""
    program = (
        "import sys\n"
        "sys.modules['opentelemetry.sdk'] = None\n"
        "import brainq, brainq.cli.main\n"
        "assert 'opentelemetry.trace' not in sys.modules\n"
        "import brainq.engine.turn.coordinator, brainq.engine.calls.run\n"
        "import brainq.engine.finalize.finalizer, brainq.engine.upkeep.sweeper\n"
        "import brainq.workers.tasks.pool_app, brainq.engine.people.webhook_delivery\n"
        "from brainq.contracts.turn import TurnRequest\n"
        "from brainq.runtime.observe.otel_setup import start_traces\n"
        "from brainq.runtime.observe.spans import submit_span\n"
        "start_traces('coordinator')()\n"
        "with submit_span(TurnRequest(turn_id='turn-1', session_id='s1', user_message='hi')) as request: pass\n"
        "print(request.traceparent)\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "None"
