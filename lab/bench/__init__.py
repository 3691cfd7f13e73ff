"""The benchmark: the reference turn through real worker processes on an embedded Redis and SQLite.

Run it with `make bench` or `python -m lab.bench --help`; docs/reference/benchmarks.md says how to read it.
"""
