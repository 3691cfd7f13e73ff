"""`python -m ops.kubernetes`: render the chart, once for each file of `ops/helm/values/`, into this folder."""

from __future__ import annotations

import sys
from pathlib import Path

from ops.kubernetes.helm import find_helm
from ops.kubernetes.render import MANIFESTS, VALUES, render


def main() -> int:
    helm = find_helm()
    if helm is None:
        print("there is no helm here: run `make helm`, or install it", file=sys.stderr)
        return 1
    for values in sorted(VALUES.glob("*.yaml")):
        target = MANIFESTS / values.name
        target.write_text(render(helm, values))
        print(target.relative_to(Path.cwd()) if target.is_relative_to(Path.cwd()) else target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
