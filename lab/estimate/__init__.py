"""The difference between brainq's token estimates and the counts of services.

Run it with `python -m lab.estimate`. docs/guides/token-estimates.md explains the output.
"""
