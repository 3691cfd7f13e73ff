"""The entry points of `brainq.workers` under a short name, for this repository only: the wheel does not carry it."""
