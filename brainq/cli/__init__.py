"""The `brainq` command: `brainq.cli.main:main`. `cli.pages.events.EventPrinter` prints events to any rich Console."""
