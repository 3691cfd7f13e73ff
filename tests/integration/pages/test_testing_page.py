"""docs/guides/testing.md: its tests pass as they stand, by the plugin that pytest finds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

BY_FIXTURE = """
def test_the_fixture(brainq_run):
    assert brainq_run(brain, [says("Hi.")]).turn("Hi").text == "Hi."
"""
PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "testing.md").read_text()


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n# test_desk\.py\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "test_desk.py").write_text("\n\n".join([*blocks, BY_FIXTURE]))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:xdist", "test_desk.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{PAGE.count('def test_') + 1} passed" in done.stdout
