"""Prometheus' settings and alert rules: right by its own tools, about metrics that there are, and each rule fires."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from brainq.runtime.observe.metrics import catalogue as m

ROOT = Path(__file__).parents[3]
OPS = ROOT / "ops/prometheus"
needs_promtool = pytest.mark.needs(shutil.which("promtool") is not None, "promtool (Debian: prometheus)")
SHOWN = {
    f"{metric.name}{ending}"
    for metric in m.ALL
    for ending in {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}[metric.kind]
}


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((OPS / "brainq.rules.yml").read_text())["groups"]
    return group["rules"]


def named_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:brainq|gen_ai_client)_\w+", re.sub(r"\{[^}]*\}|by \([^)]*\)", "", expression)))


def promtool(*arguments: str) -> str:
    done = subprocess.run(["promtool", *arguments], cwd=OPS, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_promtool
def test_the_rules_do_what_their_tests_say() -> None:
    assert f"{len(rules())} rules found" in promtool("check", "rules", "brainq.rules.yml")
    assert "SUCCESS" in promtool("test", "rules", "brainq.rules.test.yml")
    assert "SUCCESS" in promtool("check", "config", "--syntax-only", "prometheus.yml")


def test_each_rule_has_a_test_that_makes_it_fire_and_one_that_does_not() -> None:
    tests = yaml.safe_load((OPS / "brainq.rules.test.yml").read_text())["tests"]
    asked = [case for test in tests for case in test["alert_rule_test"]]
    names = {rule["alert"] for rule in rules()}
    assert {case["alertname"] for case in asked if case["exp_alerts"]} == names
    assert {case["alertname"] for case in asked if not case["exp_alerts"]} == names


def test_each_rule_says_what_to_do() -> None:
    page = (ROOT / "docs/operate/operations.md").read_text()
    headings = re.findall(r"^### (\w+)$", page, re.M)
    assert headings == [rule["alert"] for rule in rules()]
    for rule in rules():
        assert rule["annotations"]["runbook"] == f"docs/operate/operations.md#{rule['alert'].lower()}"
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in ("critical", "warning", "info")


def test_rules_and_their_tests_are_about_metrics_that_there_are() -> None:
    for rule in rules():
        named = named_in(rule["expr"])
        assert named <= SHOWN, rule["alert"]
        assert named or "up{" in rule["expr"], rule["alert"]
    tests = yaml.safe_load((OPS / "brainq.rules.test.yml").read_text())["tests"]
    for series in (series["series"] for test in tests for series in test["input_series"]):
        name, _, labels = series.partition("{")
        assert name in SHOWN | {"up"}, series
        if (metric := next((each for each in m.ALL if name in (each.shown, each.name)), None)) is not None:
            assert set(re.findall(r"(\w+)=", labels)) <= set(metric.labels), series


def test_the_page_names_every_metric_as_the_code_has_it() -> None:
    page = (ROOT / "docs/operate/metrics.md").read_text()
    parts = re.findall(r"^(Counter|Histogram|Gauge)s:\n\n((?:- .+\n)+)", page, re.M)
    lines = [(kind.lower(), line) for kind, part in parts for line in part.splitlines()]
    labels = {each: ", ".join(f"`{label}`" for label in each.labels) for each in m.ALL}
    told = {(each.kind, f"- `{each.shown}`" + (f" ({labels[each]})" if each.labels else "")) for each in m.ALL}
    assert (set(lines), len(lines)) == (told, len(told))
    assert m.CONVENTIONS in page


def test_the_scrape_brings_a_token_and_asks_a_gateway() -> None:
    (job,) = yaml.safe_load((OPS / "prometheus.yml").read_text())["scrape_configs"]
    assert (job["job_name"], job["metrics_path"]) == ("brainq", "/metrics")
    assert job["authorization"] == {"type": "Bearer", "credentials_file": "token"}
    assert "ops/prometheus/token" in (ROOT / ".gitignore").read_text().splitlines()
