"""Official clients against a real gateway: each feature does what docs/wires/clients.md says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.clients.matrix import CLIENTS, FEATURES, RESULTS, OfficialClient, read_results
from lab.clients.running import Deployment, deployed, run_client, why_not

pytestmark = pytest.mark.full
CASES = [
    pytest.param(client, id=client.name, marks=pytest.mark.needs(not why_not(client), why_not(client)))
    for client in CLIENTS
]


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(tmp_path_factory.mktemp("clients")) as deployment:
        yield deployment


@pytest.mark.timeout(900)
@pytest.mark.parametrize("client", CASES)
def test_a_client_does_what_the_page_says(client: OfficialClient, where: Deployment) -> None:
    recorded = read_results(RESULTS.read_text())[client.name]
    seen = run_client(client, where)
    told = {name: (seen.features[name].outcome, seen.features[name].why) for name in FEATURES}
    assert told == {name: (recorded.features[name].outcome, recorded.features[name].why) for name in FEATURES}
    assert seen.version == recorded.version
