"""What operates brainq: configurations, runbooks, and the benchmark (`python -m lab.bench`)."""
