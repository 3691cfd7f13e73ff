"""A browser's EventSource follows a turn, as docs/wires/http.md says, without any of our code before the gateway."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from brainq.app.devserver.ports import free_port
from tests.support.brains import diary
from tests.support.brains.obedient import script
from tests.support.browser import CHROMIUM
from tests.support.gateways import GatewayProcess
from tests.support.world import World

pytestmark = [pytest.mark.full, pytest.mark.needs(CHROMIUM, "chromium")]

FOLLOW = """turn => {
  window.seen = [];
  window.opened = 0;
  const events = new EventSource(`/v1/turns/${turn}/events`);
  events.onopen = () => { window.opened += 1; };
  events.onmessage = (message) => {
    const event = JSON.parse(message.data);
    window.seen.push([message.lastEventId, event]);
    if (event.kind === "result") events.close();
  };
}"""


def test_an_event_source_goes_on_by_itself_after_its_gateway_was_killed(
    browser: Browser, world: World, session: str, tmp_path: Path
) -> None:
    port = free_port()
    said = script([("read", {"name": "a", "gate": f"{session}-read"})], final="so 😀 it is")
    handle = world.client.submit(session, said)
    context = browser.new_context()
    try:
        page = context.new_page()
        page.set_default_timeout(120_000)
        with GatewayProcess(tmp_path, world.environment, port=port) as first:
            page.goto(first.url)
            page.evaluate(FOLLOW, handle.turn_id)
            page.wait_for_function("() => window.seen.some(([_, event]) => event.kind === 'call.running')")
            first.kill()
        with GatewayProcess(tmp_path, world.environment, port=port):
            page.wait_for_function("() => window.opened === 2")
            diary.open_gate(f"{session}-read")
            page.wait_for_function("() => window.seen.some(([_, event]) => event.kind === 'result')")
            seen = page.evaluate("() => window.seen")
    finally:
        context.close()
    whole = [event.model_dump(mode="json") for event in handle.events()]
    assert [event for _, event in seen] == whole
    assert [number for number, _ in seen] == [str(event["seq"]) for event in whole]
