"""The dashboard: its file is what its rows say, and asks for metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from brainq.runtime.observe.metrics import catalogue as m
from ops.grafana.dashboard import FILE, ROWS, dashboard, text
from tests.unit.lab.test_prometheus import SHOWN, named_in

GRAFANA = FILE.parents[1]
PANELS = [panel for row in ROWS for panel in row.panels]


def test_the_file_is_what_the_rows_say() -> None:
    assert FILE.read_text() == text(), "run `python -m ops.grafana`"


def test_it_asks_for_metrics_that_there_are_and_shows_each() -> None:
    asked = [expression for panel in PANELS for expression in panel.asked.values()]
    named = {name for expression in asked for name in named_in(expression)}
    assert named <= SHOWN
    unseen = {metric.name for metric in m.ALL if not any(metric.name in name for name in named)}
    assert unseen == {"brainq_build_info", "brainq_series_dropped", "brainq_open_turns_cut"}


@pytest.mark.parametrize("metric", [metric for metric in m.ALL if metric.labels], ids=lambda metric: metric.name)
def test_it_groups_and_names_lines_by_labels_that_there_are(metric: Any) -> None:
    known = {*metric.labels, "le"}
    for panel in PANELS:
        for legend, expression in panel.asked.items():
            if named_in(expression) & {metric.name, metric.shown, f"{metric.name}_bucket", f"{metric.name}_count"}:
                assert set(re.findall(r"{{(\w+)}}", legend)) <= known, panel.title
                grouped = re.findall(r"by \(([^)]*)\)", expression)
                assert {label.strip() for labels in grouped for label in labels.split(",")} <= known, panel.title


def test_its_panels_lie_beside_and_below_each_other() -> None:
    made = dashboard()["panels"]
    assert len({panel["id"] for panel in made}) == len(made)
    places = [panel["gridPos"] for panel in made]
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)), "two panels lie on each other"
    assert max(x for x, _ in cells) == 23


def test_grafana_is_told_where_prometheus_and_the_dashboard_are() -> None:
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    (provider,) = yaml.safe_load((GRAFANA / "provisioning/dashboards/brainq.yml").read_text())["providers"]
    compose = yaml.safe_load((Path(__file__).parents[3] / "docker-compose.yml").read_text())
    assert f"./ops/grafana/dashboards:{provider['options']['path']}:ro" in compose["services"]["grafana"]["volumes"]
    assert json.loads(FILE.read_text())["uid"] == "brainq"
