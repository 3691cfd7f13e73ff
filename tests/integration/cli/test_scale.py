"""`brainq scale`: the table for people, JSON for programs, and what is refused."""

from __future__ import annotations

import json

from brainq.client.client import Client
from brainq.errors import ExitCode
from tests.support.commands import Brainq


def test_each_pool_has_a_row_and_one_pool_its_number(brainq: Brainq, client: Client) -> None:
    for number in range(3):
        client.submit(f"s{number}", "hello")
    page = brainq("scale", "--min", "0")
    assert page.code == 0, page.err
    first = {line.split()[0]: line.split()[1:3] for line in page.out.splitlines() if line.strip()}
    assert first["coordinator"] == ["1", "0"], "three turns are less than a worker's threads"
    assert first["serial"] == ["0", "0"]
    found = json.loads(brainq("scale", "--pool", "coordinator", "--json").out)
    assert (found["wanted"], found["pools"][0]["queued"]) == (1, 3)
    assert json.loads(brainq("scale", "--pool", "serial", "--min", "2", "--json").out)["wanted"] == 2


def test_what_cannot_be_is_refused_by_name(brainq: Brainq) -> None:
    for arguments, said in (
        (("--pool", "writers"), "is not one of coordinator, parallel, serial, finalizer"),
        (("--min", "3", "--max", "2"), "above max, 2"),
        (("--max", "0"), "use 1 to 1000"),
    ):
        refused = brainq("scale", *arguments)
        assert refused.code == ExitCode.USAGE
        assert said in refused.err
