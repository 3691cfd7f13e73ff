"""Processes that `brainq dev` and `brainq up` start, supervise and reload."""
