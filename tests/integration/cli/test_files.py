"""`--attach`, and where a message is shown its files are named."""

from __future__ import annotations

from pathlib import Path

from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.errors import ExitCode
from tests.support.blobs import png
from tests.support.commands import Brainq


def test_a_picture_is_sent_and_named(brainq: Brainq, client: Client, tmp_path: Path) -> None:
    path = tmp_path / "plan.png"
    path.write_bytes(png())
    sent = brainq("submit", "s1", "Look.", "--attach", str(path), "--no-wait")
    assert sent.code == 0, sent.err
    turn_id = sent.out.strip()
    named = f"Look. [with plan.png (image/png, {len(png())} bytes)]"
    assert named in brainq("history", "s1").out
    assert named in brainq("show", turn_id).out
    row = wiring_of(client).store.turns.request(turn_id)
    assert row is not None
    assert client.handle(turn_id).file(row.attachments[0].sha256).data == png()
    refused = brainq("submit", "s1", "Look.", "--attach", str(tmp_path / "gone"))
    assert refused.code == ExitCode.USAGE
    assert "--attach: cannot read" in refused.err
