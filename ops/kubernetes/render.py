"""What the chart renders, as it is committed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from ops.kubernetes.helm import ROOT

CHART = ROOT / "ops" / "helm" / "brainq"
VALUES = ROOT / "ops" / "helm" / "values"
MANIFESTS = Path(__file__).parent
NAMESPACE = "brainq"


def template(helm: str, values: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    """`helm template` of a release `brainq`; `settings` as `--set` takes them."""
    command: Sequence[str] = [helm, "template", "brainq", str(CHART), "--namespace", NAMESPACE, "-f", str(values)]
    return subprocess.run(
        [*command, *(part for setting in settings for part in ("--set", setting))],
        capture_output=True,
        text=True,
        check=False,
    )


def render(helm: str, values: Path) -> str:
    """The manifests with these values. Raises RuntimeError with what helm says is wrong."""
    done = template(helm, values)
    if done.returncode:
        raise RuntimeError(done.stderr)
    head = f"# Rendered from ops/helm/brainq with {values.relative_to(ROOT)}: change these, then `make manifests`.\n"
    return head + done.stdout
