"""How a rival is driven: turns are files, and so are their endings. The standard library alone.

The driver makes `turns/ID`; who runs turns takes it up, also after a restart, and writes `ended/ID` once, in the end.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EFFECTS = "FAULTS_EFFECTS"
BEFORE, WRITE = "before", "write"
HELD_S = 310.0
LOOK_EVERY_S = 0.05


def tell(kind: str, place: str, turn: str, **facts: Any) -> None:
    """Report a place to the effect server, as in lab/faults/shop.py. Returns once it is logged and not held."""
    body = {"place": place, "turn": turn, "pid": os.getpid(), **facts}
    request = urllib.request.Request(f"{os.environ[EFFECTS]}/{kind}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=HELD_S):
        pass


def write(turn: str) -> str:
    """Write, as every rival does: visit the place before the effect, and then have the effect."""
    tell("visit", BEFORE, turn)
    tell("write", WRITE, turn, key=turn)
    return "written"


@dataclass(frozen=True)
class Desk:
    """`setting` is one of those that lab/faults/rivals/systems.py names for this rival."""

    directory: Path
    setting: str

    def fresh(self) -> Iterator[str]:
        """Yield each turn without an ending once, also those from before a restart. The iterator never ends."""
        seen: set[str] = set()
        while True:
            for path in sorted((self.directory / "turns").iterdir()):
                if path.name not in seen:
                    seen.add(path.name)
                    if not (self.directory / "ended" / path.name).exists():
                        yield path.name
            time.sleep(LOOK_EVERY_S)

    def end(self, turn: str, ending: str, said: str = "") -> None:
        """`ending`: `completed` or `failed`. `said`: what the caller is told of the write."""
        part = self.directory / f"{turn}.part"
        part.write_text(json.dumps({"ending": ending, "said": said[:300]}))
        part.rename(self.directory / "ended" / turn)

    def port(self, name: str) -> int:
        """Return the port that the driver chose."""
        return json.loads((self.directory / "ports.json").read_text())[name]


def role_and_desk() -> tuple[str, Desk]:
    """`run_X.py ROLE DIRECTORY SETTING`."""
    role, directory, setting = sys.argv[1:4]
    if role != "server":  # a server reads its input itself
        threading.Thread(target=_end_with_the_driver, daemon=True).start()
    return role, Desk(Path(directory), setting)


def _end_with_the_driver() -> None:
    sys.stdin.read()
    os._exit(0)
