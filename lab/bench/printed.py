"""What the smaller benchmarks share: a directory to run in, and their figures as JSON on stdout."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lab.bench.machine import machine
from lab.bench.outcomes import BenchFailure
from lab.bench.stage import forget_settings


def print_figures(measure: Callable[[Path], Mapping[str, Any]]) -> int:
    """Print what `measure` finds in a directory that goes with it, and the machine; the exit code."""
    forget_settings()
    on = machine()
    kept = Path(".bench")
    kept.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=kept) as name:
        try:
            figures = measure(Path(name))
        except BenchFailure as failure:
            print(f"bench: {failure}", file=sys.stderr)
            return 1
    print(json.dumps({**figures, "machine": on}, indent=2))
    return 0
