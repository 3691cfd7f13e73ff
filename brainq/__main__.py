"""`python -m brainq` is the `brainq` command."""

from __future__ import annotations

from brainq.cli.main import main

if __name__ == "__main__":
    main()
