"""Pictures of the page for docs/, of real turns in real pools: `python -m lab.screenshots`."""
