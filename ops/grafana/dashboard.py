"""The dashboard, told in rows of panels: what each shows, and by which expressions. Grafana's JSON is made of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

FILE = Path(__file__).parent / "dashboards/brainq.json"
WIDTH, HEIGHT, STAT_HEIGHT = 24, 8, 4
SOURCE = {"type": "prometheus", "uid": "${source}"}
OF = 'brain=~"$brain"'
FAILING = f'{OF}, ending=~"failed|timed_out"'

Unit = Literal["short", "s", "reqps", "percentunit", "currencyUSD", "bytes", "none"]


@dataclass(frozen=True, slots=True)
class Panel:
    """`asked`: a legend, by labels in braces, and the PromQL behind it; one for each kind of line.

    red   the value from which on it is shown in red
    """

    title: str
    unit: Unit
    asked: dict[str, str]
    kind: Literal["timeseries", "stat", "table", "bargauge"] = "timeseries"
    about: str = ""
    red: float | None = None
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    panels: tuple[Panel, ...] = field(default=())


def quantile(q: float, metric: str, by: str, where: str = "") -> str:
    labels = f"{{{where}}}" if where else ""
    return f"histogram_quantile({q}, sum by ({by}, le) (rate({metric}_bucket{labels}[$__rate_interval])))".replace(
        "(, le)", "(le)"
    )


def rate(metric: str, by: str, where: str = "") -> str:
    labels = f"{{{where}}}" if where else ""
    return f"sum by ({by}) (rate({metric}{labels}[$__rate_interval]))"


def total(metric: str, where: str = "") -> str:
    labels = f"{{{where}}}" if where else ""
    return f"sum(rate({metric}{labels}[$__rate_interval]))"


CALLS = "gen_ai_client_operation_duration_seconds"
TURNS = "brainq_turns_total"

ROWS = (
    Row(
        "Overview",
        (
            Panel("Turns a second", "reqps", {"turns": total(TURNS, OF)}, "stat"),
            Panel(
                "Failed or timed out",
                "percentunit",
                {"failing": f"{total(TURNS, FAILING)} / {total(TURNS, OF)}"},
                "stat",
                red=0.1,
            ),
            Panel("Active", "short", {"active": 'brainq_open_turns{state="active"}'}, "stat"),
            Panel("Parked", "short", {"parked": 'brainq_open_turns{state="parked"}'}, "stat"),
            Panel("Oldest in a queue", "s", {"age": "max(brainq_queue_oldest_age_seconds)"}, "stat", red=60),
            Panel("Given up", "short", {"given up": "sum(brainq_given_up)"}, "stat", red=1),
            Panel("US dollars an hour", "currencyUSD", {"cost": "sum(increase(brainq_cost_usd_total[1h]))"}, "stat"),
            Panel("Services that answer", "short", {"{{service}}": "brainq_up"}, "stat"),
        ),
    ),
    Row(
        "Turns",
        (
            Panel(
                "Turns a second, by ending",
                "reqps",
                {"{{ending}}: {{stop_reason}}": rate(TURNS, "ending, stop_reason", OF)},
                stacked=True,
            ),
            Panel(
                "How long turns take",
                "s",
                {
                    "p50": quantile(0.5, "brainq_turn_duration_seconds", "", OF),
                    "p95": quantile(0.95, "brainq_turn_duration_seconds", "", OF),
                    "p95 of the wait before": quantile(0.95, "brainq_turn_wait_seconds", "", OF),
                },
                about="Without the time they were parked.",
            ),
            Panel("Turns that have not ended", "short", {"{{state}}": "brainq_open_turns"}, stacked=True),
            Panel("The oldest in each state", "s", {"{{state}}": "brainq_open_turns_oldest_age_seconds"}),
            Panel("Steps a second", "reqps", {"{{brain}}": rate("brainq_steps_total", "brain", OF)}),
            Panel("Stopped by a limit", "reqps", {"{{limit}}": rate("brainq_budget_stops_total", "limit", OF)}),
            Panel(
                "How long turns were parked (p95)",
                "s",
                {"{{brain}}": quantile(0.95, "brainq_turn_parked_seconds", "brain", OF)},
            ),
            Panel(
                "Room for live turns",
                "short",
                {"live": "brainq_room_live", "room": "brainq_room_size", "tenants that wait": "brainq_tenants_waiting"},
            ),
            Panel("Calls that wait for a person", "short", {"approvals": "brainq_approvals_pending"}),
        ),
    ),
    Row(
        "Queues and workers",
        (
            Panel("Doorbells in queues", "short", {"{{queue}}": "brainq_queue_depth"}),
            Panel("Age of the oldest", "s", {"{{queue}}": "brainq_queue_oldest_age_seconds"}, red=60),
            Panel(
                "Busy slots",
                "percentunit",
                {"{{pool}}": "brainq_worker_slots_busy / brainq_worker_slots > 0 or brainq_worker_slots_busy"},
                red=0.95,
            ),
            Panel("Workers alive", "short", {"{{pool}}": "brainq_workers"}),
            Panel(
                "Wrong behind healthy processes",
                "short",
                {"{{kind}}": "max by (kind) (brainq_fleet_troubles)"},
                about="`brainq fleet` says what each is and what to do.",
                red=1,
            ),
            Panel("Leases that lapsed", "short", {"{{of}}": "increase(brainq_leases_lapsed_total[$__rate_interval])"}),
            Panel(
                "Threads that did not continue with what they opened",
                "short",
                {"{{reason}}": "sum by (reason) (rate(brainq_offers_declined_total[$__rate_interval]))"},
            ),
            Panel(
                "The sweeper",
                "s",
                {
                    "last round": "brainq_sweeper_last_round_age_seconds",
                    "oldest look due": "brainq_sweeper_overdue_seconds",
                },
                red=30,
            ),
        ),
    ),
    Row(
        "Tools",
        (
            Panel("Calls a second", "reqps", {"{{tool}}": rate("brainq_calls_total", "tool", 'tool=~"$tool"')}),
            Panel(
                "Calls that did not complete",
                "reqps",
                {
                    "{{tool}}: {{outcome}}": rate(
                        "brainq_calls_total", "tool, outcome", 'tool=~"$tool", outcome!="completed"'
                    )
                },
            ),
            Panel(
                "How long they run (p95)",
                "s",
                {"{{tool}}": quantile(0.95, "brainq_call_duration_seconds", "tool", 'tool=~"$tool"')},
            ),
            Panel(
                "How long they wait (p95)",
                "s",
                {
                    "{{effect}} in the queue": quantile(0.95, "brainq_call_queue_seconds", "effect"),
                    "{{effect}} for lanes": quantile(0.95, "brainq_lane_wait_seconds", "effect"),
                },
            ),
            Panel("Calls in lanes", "short", {"{{state}}": "brainq_lane_calls"}),
            Panel("Late results", "short", {"{{effect}}": "increase(brainq_late_results_total[$__rate_interval])"}),
        ),
    ),
    Row(
        "Models",
        (
            Panel(
                "Model calls a second",
                "reqps",
                {
                    "{{gen_ai_request_model}} {{brainq_purpose}} {{error_type}}": rate(
                        f"{CALLS}_count", "gen_ai_request_model, brainq_purpose, error_type"
                    )
                },
            ),
            Panel(
                "How long they take",
                "s",
                {
                    "{{gen_ai_request_model}} p50": quantile(0.5, CALLS, "gen_ai_request_model"),
                    "{{gen_ai_request_model}} p95": quantile(0.95, CALLS, "gen_ai_request_model"),
                },
            ),
            Panel("In line under a model's limits", "short", {"{{model}}": "brainq_model_waiting"}),
            Panel("Tokens a second", "short", {"{{model}} {{type}}": rate("brainq_tokens_total", "model, type")}),
            Panel(
                "Tokens of a call (p95)",
                "short",
                {
                    "{{gen_ai_request_model}} {{gen_ai_token_type}}": quantile(
                        0.95, "gen_ai_client_token_usage", "gen_ai_request_model, gen_ai_token_type"
                    )
                },
            ),
            Panel(
                "US dollars an hour",
                "currencyUSD",
                {"{{model}} {{purpose}}": "sum by (model, purpose) (increase(brainq_cost_usd_total[1h]))"},
                stacked=True,
            ),
        ),
    ),
    Row(
        "After the answer, and what all this stands on",
        (
            Panel("Given up", "short", {"{{what}}": "brainq_given_up"}, red=1),
            Panel(
                "Finalizer steps that failed",
                "reqps",
                {"{{step}} {{then}}": rate("brainq_finalizer_failures_total", "step, then")},
            ),
            Panel(
                "Webhooks", "reqps", {"{{host}} {{outcome}}": rate("brainq_webhook_deliveries_total", "host, outcome")}
            ),
            Panel("Deliveries that wait", "short", {"pending": "brainq_webhook_deliveries_pending"}),
            Panel(
                "Failures of background threads",
                "short",
                {"{{thread}}": rate("brainq_thread_failures_total", "thread")},
            ),
            Panel(
                "Redis' memory",
                "bytes",
                {"used": "brainq_redis_memory_bytes", "limit": "brainq_redis_memory_limit_bytes"},
            ),
        ),
    ),
)


def text() -> str:
    return json.dumps(dashboard(), indent=1) + "\n"


def dashboard() -> dict[str, Any]:
    """As Grafana 10 and newer read it."""
    panels: list[dict[str, Any]] = []
    y = 0
    for row in ROWS:
        panels.append(_row(row.title, len(panels) + 1, y))
        y += 1
        x = 0
        for panel in row.panels:
            width, height = (3, STAT_HEIGHT) if panel.kind == "stat" else (8, HEIGHT)
            if x + width > WIDTH:
                x, y = 0, y + height
            panels.append(_panel(panel, len(panels) + 1, {"x": x, "y": y, "w": width, "h": height}))
            x += width
        y += STAT_HEIGHT if row.panels[-1].kind == "stat" else HEIGHT
    return {
        "uid": "brainq",
        "title": "brainq",
        "tags": ["brainq"],
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "schemaVersion": 39,
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
                _variable("brain", "label_values(brainq_turns_total, brain)"),
                _variable("tool", "label_values(brainq_calls_total, tool)"),
            ]
        },
        "annotations": {
            "list": [
                {
                    "name": "Alerts",
                    "datasource": SOURCE,
                    "enable": True,
                    "iconColor": "red",
                    "expr": 'ALERTS{alertname=~"Brainq.*", alertstate="firing"}',
                    "titleFormat": "{{alertname}}",
                }
            ]
        },
        "panels": panels,
    }


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _row(title: str, number: int, y: int) -> dict[str, Any]:
    place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": place}


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.red is not None:
        steps.append({"color": "red", "value": panel.red})
    shape: dict[str, Any] = {"unit": panel.unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps}}
    options: dict[str, Any] = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value"}
    if panel.kind == "timeseries":
        mode = "normal" if panel.stacked else "none"
        lines = {"mode": "dashed" if panel.red is not None else "off"}
        shape["custom"] = {
            "fillOpacity": 30 if panel.stacked else 8,
            "stacking": {"mode": mode},
            "thresholdsStyle": lines,
        }
        options = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": shape, "overrides": []},
        "options": options,
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
            for index, (legend, expression) in enumerate(panel.asked.items())
        ],
    }
