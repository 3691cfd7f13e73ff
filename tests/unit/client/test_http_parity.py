"""The clients over HTTP have the verbs of the direct ones, and load nothing that a light environment lacks."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import brainq
from brainq.client.http.direct_only import DIRECT_ONLY
from brainq.client.spending import BudgetVerbs

ROOT = Path(__file__).parents[3]
HTTP = ROOT / "brainq/client/http"
PAIRS: list[tuple[Any, Any]] = [
    (brainq.Client, brainq.HttpClient),
    (brainq.TurnHandle, brainq.HttpTurnHandle),
    (brainq.Session, brainq.HttpSession),
    (brainq.Hold, brainq.HttpHold),
    (brainq.Flag, brainq.HttpFlag),
    (brainq.Memories, brainq.HttpMemories),
    (BudgetVerbs, brainq.HttpBudgets),
    (brainq.HttpClient, brainq.AsyncHttpClient),
    (brainq.HttpTurnHandle, brainq.AsyncHttpTurnHandle),
    (brainq.HttpSession, brainq.AsyncHttpSession),
]
OF_THE_TOKEN = {"session_prefixes", "name_prefixes", "may_configure"}
"""Parameters by which a gateway narrows what its callers see."""
BY_THE_TOKEN = {(BudgetVerbs, "set", "by"), (BudgetVerbs, "raise_by", "by")}
ALLOWED = ("pydantic", "pydantic_core", "httpx", "httpcore", "h11", "anyio", "certifi", "idna", "sniffio", "brainq")


def verbs(of: type) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=lambda of: of.__name__)
def test_each_verb_is_there_or_says_why_not(one: Any, other: Any) -> None:
    missing = verbs(one) - verbs(other)
    assert missing <= set(DIRECT_ONLY)
    assert verbs(other) - verbs(one) <= {"over"}
    for name in missing:
        with pytest.raises(AttributeError, match=f"needs a direct Client, because {re.escape(DIRECT_ONLY[name])}"):
            getattr(other.__new__(other), name)


def test_every_reason_is_of_a_verb() -> None:
    assert set(DIRECT_ONLY) <= verbs(brainq.Client) | verbs(brainq.TurnHandle)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        getattr(brainq.HttpClient.__new__(brainq.HttpClient), "nonsense")  # noqa: B009


def parameters(of: type, name: str) -> dict[str, tuple[Any, Any]]:
    """The parameters of a verb, by name: the kind and default of each. Those of `**options` are one."""
    found = inspect.signature(getattr(of, name)).parameters.values()
    options = {*brainq.SubmitOptions.__annotations__, *brainq.BulkOptions.__annotations__, "options"}
    listed = {*brainq.TurnFilters.__annotations__, "filters"} if name in ("turns", "iterate_turns") else set[str]()
    return {
        each.name: (each.kind, each.default)
        for each in found
        if each.name not in OF_THE_TOKEN | listed
        and (each.name not in options or name in ("deny", "cancel", "turns", "ramp_build"))
        and (of, name, each.name) not in BY_THE_TOKEN
    }


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=lambda of: of.__name__)
def test_each_verb_takes_the_same(one: Any, other: Any) -> None:
    for name in verbs(one) & verbs(other):
        if not callable(getattr(one, name)) or isinstance(inspect.getattr_static(one, name), property):
            continue
        asked, offered = parameters(one, name), parameters(other, name)
        if name in ("stop", "readiness", "hold", "interrupt", "pause"):  # a reason is theirs, not a bulk's
            asked, offered = ({k: v for k, v in some.items() if k != "reason"} for some in (asked, offered))
        assert offered == asked, name


def test_every_verb_of_a_public_class_has_words() -> None:
    for _, other in PAIRS:
        for name in verbs(other):
            assert inspect.getdoc(getattr(other, name)), f"{other.__name__}.{name}"


REFUSING = f"""
import sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top[0] != "_" and top not in {ALLOWED!r} and top not in sys.stdlib_module_names and top not in LIGHT:
            raise ModuleNotFoundError(f"{{name}} is not here")
LIGHT = {{"annotated_types", "typing_extensions", "typing_inspection", "socksio", "brotli", "brotlicffi", "zstandard"}}
sys.meta_path.insert(0, Refusing())
"""
WORK = """
import json, httpx, brainq
from brainq import HttpClient, TextDelta, File, WithFiles
for name in TYPES:
    getattr(brainq, name)
EVENT = {"seq": 1, "kind": "text.delta", "at_ms": 1, "data": {"text": "Hi"}}
LAST = {"seq": 2, "kind": "result", "at_ms": 2, "data": {"ending": "completed"}}
RESULT = {"turn_id": "t-1", "session_id": "s", "text": "Hi", "ending": "completed", "stop_reason": "answered", "new": 1}
def answer(request):
    match request.url.path.rsplit("/", 1)[-1]:
        case "events":
            frames = "".join(f"id: {e['seq']}\\ndata: {json.dumps(e)}\\n\\n" for e in (EVENT, LAST))
            return httpx.Response(200, text=frames)
        case "result" if request.method == "GET":
            return httpx.Response(200, json=RESULT)
        case "result":
            return httpx.Response(200, json={"taken": "settled"})
        case _:
            return httpx.Response(202, json={"turn_id": "t-1", "session_id": "s", "created": True})
client = HttpClient("http://g", "t", transport=httpx.MockTransport(answer))
png = File(b"\\x89PNG\\r\\n\\x1a\\n" + bytes(9))
handle = client.submit("s", "Hi", limits={"max_steps": 3}, options={"temperature": 1}, attachments=[png],
                       history=[{"role": "user", "content": "x"}], metadata={"a": 1}, output_schema={"type": "object"})
assert handle.result().text == "Hi" and [e.seq for e in handle.events()] == [1, 2]
assert isinstance(next(iter(handle.events())), TextDelta) and list(handle.text()) == ["Hi"]
assert handle.give_result("c1-0", WithFiles(1, [png])) == "settled"
print("done")
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_works_where_only_pydantic_and_httpx_are() -> None:
    types = sorted({name for path in HTTP.glob("*.py") for name in re.findall(r"brainq\.([A-Z]\w+)", path.read_text())})
    assert len(types) > 30
    assert run(f"TYPES = {types!r}\n{REFUSING}\n{WORK}") == "done"


def test_the_refusal_refuses() -> None:
    done = subprocess.run(
        [sys.executable, "-c", REFUSING + "import redis"], capture_output=True, text=True, check=False
    )
    assert "redis is not here" in done.stderr


def test_importing_it_loads_neither_httpx_nor_pydantic() -> None:
    heavy = ("httpx", "pydantic", "asyncio", "ssl", "redis", "sqlalchemy", "celery")
    code = (
        f"import sys\nfrom brainq import HttpClient, AsyncHttpClient\nprint([m for m in {heavy!r} if m in sys.modules])"
    )
    assert run(code) == "[]"


def test_the_extra_is_packaged() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert [re.split(r"[<>=]", one)[0] for one in extras["client"]] == ["httpx"]
    assert "client" in extras["all"][0]
