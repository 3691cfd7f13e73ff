"""The page's modules that need no document, run by Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from brainq.gateway.page.routes import FOLDER

NODE = shutil.which("node") or ""


def run(directory: Path, source: str, given: object) -> Any:
    """Return the value that `source`, a module beside the page's own (`./live/fold.js`), passes to `told(value)`."""
    shutil.copytree(FOLDER, directory / "assets", dirs_exist_ok=True)
    (directory / "assets" / "package.json").write_text('{"type": "module"}')
    told = "const told = (value) => console.log(JSON.stringify(value));"
    (directory / "assets" / "asked.js").write_text(f"const given = {json.dumps(given)};\n{told}\n{source}")
    done = subprocess.run(
        [NODE, "asked.js"], cwd=directory / "assets", capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
