"""The reference turn on brainq and on what else people run agents with: `make compare`, or `python -m ops.compare`.

docs/benchmarks.md says how to read it. What runs in a rival's own virtual environment imports the standard library,
`ops.compare.turn`, `ops.compare.rows` and `ops.compare.serving`, and nothing of brainq.
"""
