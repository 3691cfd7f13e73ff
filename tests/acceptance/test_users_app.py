"""A user's app in a folder of its own, with brainq from the wheel: its 30 tests pass, crash and time included."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
APP = ROOT / "tests" / "support" / "users_app"


def test_the_tests_of_a_users_app_pass(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path / "dist"), versions=["standard"])
    venv.create(tmp_path / "venv", with_pip=True)
    (site,) = (tmp_path / "venv" / "lib").glob("python3*/site-packages")
    # What brainq stands on is taken from here; a `.pth` inside it, such as that of brainq's own checkout, is not read.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    python = str(tmp_path / "venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, timeout=200)
    desk = tmp_path / "desk"
    desk.mkdir()
    shutil.copy(APP / "app.py", desk / "app.py")
    shutil.copy(APP / "desk_tests.py", desk / "test_desk.py")
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:hypothesispytest", "test_desk.py"],
        cwd=desk,
        env={name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed in ([\d.]+)s", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 30
    print(f"{passed[1]} tests in {passed[2]} s")
