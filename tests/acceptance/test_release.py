"""docs/operate/versions.md: a release is the same twice, and says what is in it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from brainq import __version__
from lab.release import SUMS

ROOT = Path(__file__).parents[2]


@pytest.mark.full
@pytest.mark.needs(bool(find_spec("cyclonedx_py")), "what `make release` installs")
def test_a_release_is_built_twice_listed_and_installed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lab.release", "--to", str(tmp_path / "dist")]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert made.returncode == 0, made.stderr
    base = f"brainq-{__version__}"
    names = {path.name for path in (tmp_path / "dist").iterdir()}
    assert names == {f"{base}-py3-none-any.whl", f"{base}.tar.gz", f"{base}.cdx.json", SUMS}

    bom = json.loads((tmp_path / "dist" / f"{base}.cdx.json").read_text())
    assert bom["bomFormat"] == "CycloneDX"
    assert (bom["metadata"]["component"]["name"], bom["metadata"]["component"]["version"]) == ("brainq", __version__)
    components = {part["name"]: part for part in bom["components"]}
    assert {"celery", "redis", "sqlalchemy", "pydantic"} <= components.keys()
    hashes = components["celery"]["externalReferences"][0]["hashes"]
    assert {one["alg"] for one in hashes} == {"SHA-256"}
