"""`python -m lab.screenshots`: a shop's help desk for two minutes, and pictures of it into docs/. Needs chromium.

`python -m lab.screenshots FOLDER` takes the states that a designer looks at: hovered, parked, failed, on a phone.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from brainq.app.devserver.redis_server import EmbeddedServer
from lab.screenshots.desk import desk
from lab.screenshots.states import take_states
from lab.screenshots.taking import take

DOCS = Path(__file__).parents[2] / "docs" / "images"


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("pictures are taken by chromium, which is not here")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        server = EmbeddedServer(directory / "redis")
        server.start()
        try:
            with desk(directory, server.url) as url:
                if sys.argv[1:]:
                    take_states(url, chromium, Path(sys.argv[1]))
                else:
                    take(url, chromium, DOCS)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
