"""The reference turn on brainq and on what else people run agents with: `make compare`, or `python -m ops.compare`.

docs/reference/benchmarks.md explains how to read it. Code that runs in a rival's own virtual environment imports the
standard library, `ops.compare.turn`, `ops.compare.rows` and `ops.compare.serving`, and nothing of brainq.
"""
