"""OpenAI's npm client."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.gateway.openai.conftest import STORY
from tests.support import js_clients
from tests.support.gateways import GatewayThread


@pytest.mark.full
@pytest.mark.needs(js_clients.why_not() is None, "the npm clients: make js-clients")
@pytest.mark.usefixtures("pools")
def test_the_npm_client_talks_to_a_brain(gateway: GatewayThread, key: str) -> None:
    script = js_clients.FOLDER / "talk-openai.mjs"  # packages are found from where a module lies
    shutil.copy(Path(__file__).with_name("talk.mjs"), script)
    try:
        done = subprocess.run(
            ["node", str(script), f"{gateway.url}/v1", key],
            cwd=js_clients.FOLDER,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        script.unlink()
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["story"] == said["response"] == STORY
    assert said["weather"] == "Seen rain in Oslo, rain in Bern."
    assert said["events"] == list(range(2, len(said["events"]) + 2))
    assert said["error"] == ["NotFoundError", "model_not_found"]
