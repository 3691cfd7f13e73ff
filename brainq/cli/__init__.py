"""The `brainq` command: `brainq.cli.main:main`. `pages.events.EventPrinter` prints events to any rich Console."""
