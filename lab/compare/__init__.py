"""The reference turn on brainq and on what else people run agents with: `make compare`, or `python -m lab.compare`.

docs/reference/benchmarks.md explains how to read it. Code that runs in a rival's own virtual environment imports the
standard library, `lab.compare.turn`, `lab.compare.rows` and `lab.compare.serving`, and nothing of brainq.
"""
