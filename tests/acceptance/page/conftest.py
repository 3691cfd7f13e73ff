"""A world of real pools, a gateway before it, and a browser."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.brains import diary
from tests.support.browser import Watched, chromium
from tests.support.gateways import GatewayProcess
from tests.support.world import World

_sessions = itertools.count(1)
NewPage = Callable[..., Page]


@pytest.fixture(scope="package")
def page_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(
        tmp_path_factory.mktemp("page"), environment={"BRAINQ_APP": "tests.support.brains.watched:brains"}, durable=True
    )
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def world(page_world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv(diary.DIRECTORY, str(page_world.directory))
    return page_world


@pytest.fixture(scope="package")
def gateway(page_world: World) -> Iterator[GatewayProcess]:
    with GatewayProcess(page_world.directory, page_world.environment) as served:
        yield served


@pytest.fixture(scope="module")  # not the session's: Playwright keeps an event loop running in this thread
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=30_000)  # a machine may be slow and busy
    with chromium() as started:
        yield started


@pytest.fixture
def new_page(browser: Browser, gateway: GatewayProcess) -> Iterator[NewPage]:
    """Makes pages: `new_page(color_scheme="dark", ...)`. What went wrong in any of them fails the test."""
    watched: list[Watched] = []
    contexts = []

    def make(**given: object) -> Page:
        options = {"base_url": gateway.url, "viewport": {"width": 1280, "height": 900}, **given}
        context = browser.new_context(**options)  # pyright: ignore[reportArgumentType]
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        watched.append(Watched(page))
        return page

    yield make
    for context in contexts:
        context.close()
    assert [fault for one in watched for fault in one.faults] == []


@pytest.fixture
def page(new_page: NewPage) -> Page:
    return new_page()


@pytest.fixture
def session() -> str:
    return f"page:{next(_sessions)}"
