"""A real Prometheus, beside the process that it scrapes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

from brainq.app.devserver.ports import free_port
from tests.support.wait import wait_until

OPS = Path(__file__).parents[2] / "ops/prometheus"


class Prometheus:
    """The settings and rules of ops/prometheus, but with a scrape each second, rules without a wait, and doorbells that
    are old after 2 s.

    token: for the scrape.
    """

    def __init__(self, directory: Path, gateway_port: int, token: str) -> None:
        self.port = free_port()
        settings = yaml.safe_load((OPS / "prometheus.yml").read_text())
        settings["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        settings["scrape_configs"][0]["static_configs"] = [{"targets": [f"127.0.0.1:{gateway_port}"]}]
        rules = yaml.safe_load((OPS / "brainq.rules.yml").read_text())
        for rule in rules["groups"][0]["rules"]:
            rule["for"] = "0s"
            if rule["alert"] == "BrainqQueueOld":
                rule["expr"] = rule["expr"].replace("> 60", "> 2")
        directory.mkdir()
        (directory / "prometheus.yml").write_text(yaml.safe_dump(settings))
        (directory / "brainq.rules.yml").write_text(yaml.safe_dump(rules))
        (directory / "token").write_text(token + "\n")
        self._log = (directory / "log").open("wb")
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={directory}/prometheus.yml",
                f"--storage.tsdb.path={directory}/data",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            stdout=self._log,
            stderr=self._log,
        )

    def ask(self, path: str, **query: str) -> Any:
        """Return the data of one of its API's answers."""
        with urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{urlencode(query)}", timeout=30) as answer:
            return json.loads(answer.read())["data"]

    def query(self, expression: str) -> list[Any]:
        """Return the series of an instant query."""
        return self.ask("query", query=expression)["result"]

    def firing(self) -> dict[str, list[dict[str, str]]]:
        """Return the alerts that fire: the labels of each, by name."""
        found: dict[str, list[dict[str, str]]] = {}
        for alert in self.ask("alerts")["alerts"]:
            if alert["state"] == "firing":
                found.setdefault(alert["labels"]["alertname"], []).append(alert["labels"])
        return found

    def __enter__(self) -> Self:
        wait_until(self._is_up, "Prometheus answers")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._log.close()

    def _is_up(self) -> bool:
        assert self._process.poll() is None, Path(self._log.name).read_text()
        try:
            return bool(self.ask("query", query="vector(1)"))
        except OSError:
            return False
