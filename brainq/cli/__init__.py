"""The `brainq` command. `brainq.cli.main:main` is the entry point; `timeline` is for anybody with a rich Console."""
