"""The page of clients without its runs: it says what was recorded, of every client, in the versions that are pinned."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lab.clients.matrix import CLIENTS, FEATURES, HERE, PAGE, RESULTS, OfficialClient, Seen, read_results, write_results
from lab.clients.page import page

ROOT = Path(__file__).parents[3]
RECORDED = read_results(RESULTS.read_text())


def pinned(client: OfficialClient) -> str:
    if client.place == "js":
        found = json.loads((ROOT / "tests/support/js_clients/package.json").read_text())["dependencies"]
        return found[client.package]
    lock = ROOT / "requirements.lock" if client.place == "own" else HERE / "requirements.lock"
    (version,) = re.findall(rf"^{re.escape(client.package)}==(\S+)", lock.read_text(), re.M)
    return version


def test_the_page_says_what_was_recorded() -> None:
    assert PAGE.read_text() == page(RECORDED), "run: make clients"
    assert RESULTS.read_text() == write_results(RECORDED)


def test_every_client_was_run_with_every_feature() -> None:
    assert list(RECORDED) == [client.name for client in CLIENTS]
    for record in RECORDED.values():
        assert list(record.features) == list(FEATURES)
        for seen in record.features.values():
            assert bool(seen.why) == (seen.outcome != "works"), "what does not work has its reason"


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_what_was_run_is_what_is_pinned(client: OfficialClient) -> None:
    assert RECORDED[client.name].version == pinned(client)
    folder = "js" if client.place == "js" else "python"
    assert all((HERE / folder / name).is_file() for name in client.script.split())


def test_the_page_changes_with_what_is_recorded() -> None:
    record = RECORDED["litellm"]
    broken = replace(record, features={**record.features, "stream": Seen("fails", "it stalls")})
    told = page({**RECORDED, "litellm": broken})
    assert "- LiteLLM, stream: it stalls" in told
    (row,) = [line for line in told.splitlines() if line.startswith("- [LiteLLM]")]
    assert "**no**: stream" in row


def test_nothing_says_where_packages_come_from() -> None:
    assert "://" not in (HERE / "requirements.lock").read_text()
    assert "://" not in RESULTS.read_text()
