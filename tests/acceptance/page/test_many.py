"""200 turns run at once while the list of turns is looked at: it stays small, and no frame is long.

Gaps between frames are told; what is asserted is the longest task of the page by its thread's own CPU time, because
on a busy machine a page waits for its turn like everybody.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import CDPSession, Page, expect

from brainq.client.handle import TurnHandle
from tests.support.brains.obedient import script
from tests.support.browser import CHROMIUM
from tests.support.wait import wait_until
from tests.support.world import World

pytestmark = [pytest.mark.full, pytest.mark.needs(CHROMIUM, "chromium")]

TURNS = 200
MOST_MB = 150
LONGEST_MS = 100

WATCH = """
() => {
  window.frames_ms = []; window.tasks_ms = [];
  let last = performance.now();
  const frame = (now) => { window.frames_ms.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  new PerformanceObserver((list) => list.getEntries().forEach((one) => window.tasks_ms.push(one.duration)))
    .observe({ type: "longtask" });
}
"""


def heap_mb(cdp: CDPSession) -> float:
    cdp.send("HeapProfiler.collectGarbage")
    metrics: dict[str, Any] = cdp.send("Performance.getMetrics")
    return {one["name"]: one["value"] for one in metrics["metrics"]}["JSHeapUsedSize"] / 1e6


def process_mb(page: Page) -> float:
    """What the page's own process has of memory to itself: its dirty pages, in MB."""
    title = "renderer"
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes().decode(errors="replace")
            if f"--type={title}" in command:
                rollup = (directory / "smaps_rollup").read_text()
                found.append(sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_")))
        except (OSError, ProcessLookupError):
            continue
    return max(found) / 1e3


def longest_ms(trace: bytes) -> float:
    """The longest task of the page's main thread, in ms of CPU."""
    events = json.loads(trace)["traceEvents"]
    main = {one["tid"] for one in events if one.get("args", {}).get("name") == "CrRendererMain"}
    tasks = [one for one in events if one["name"] == "ThreadControllerImpl::RunTask" and one["tid"] in main]
    assert len(tasks) > 100, "the trace has the page's tasks"
    return max(one.get("tdur", 0) for one in tasks) / 1e3


def test_two_hundred_turns_at_once_keep_the_page_small_and_smooth(page: Page, world: World, session: str) -> None:
    page.goto("/#/turns?limit=200")
    page.evaluate("() => 1")
    cdp = page.context.new_cdp_session(page)
    cdp.send("Performance.enable")
    expect(page.locator("h1")).to_have_text("Turns")
    page.evaluate(WATCH)
    browser = page.context.browser
    assert browser is not None
    browser.start_tracing(page=page, categories=["toplevel"])
    steps = [[("read", {"name": "a", "sleep_s": 0.2}), ("read", {"name": "b"})], [("write", {"name": "c"})]] * 2
    words = script(*steps, final="word " * 40, words_s=0.02)

    def submit(number: int) -> TurnHandle:
        return world.client.submit(f"{session}:{number}", words)

    with ThreadPoolExecutor(8) as pool:
        handles = list(pool.map(submit, range(TURNS)))
    rows = page.locator(f".turn-row:has(.c-session a[href*='{session.replace(':', '%3A')}%3A'])")
    wait_until(lambda: rows.count() == TURNS, "the list has them all", 60, every_s=0.5)

    def done() -> bool:
        return all((seen := handle.snapshot()) is None or seen.state.is_final for handle in handles)

    wait_until(done, "all have ended", 240, every_s=0.5)
    expect(rows.filter(has_text="completed")).to_have_count(TURNS, timeout=60_000)
    longest = longest_ms(browser.stop_tracing())
    heap, process = heap_mb(cdp), process_mb(page)
    frames: list[float] = sorted(page.evaluate("frames_ms.slice(3)"))
    tasks: list[float] = sorted(page.evaluate("tasks_ms"))
    told = (
        f"heap {heap:.1f} MB, process {process:.0f} MB, {len(frames)} frames, p50 {frames[len(frames) // 2]:.0f} ms, "
        f"p99 {frames[int(len(frames) * 0.99)]:.0f} ms, longest {frames[-1]:.0f} ms; "
        f"long tasks {tasks[-3:]}; longest by CPU {longest:.1f} ms"
    )
    print(told)
    assert heap < MOST_MB, told
    assert process < MOST_MB, told
    assert longest < LONGEST_MS, told
