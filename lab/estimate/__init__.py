"""How far brainq's token estimates are from what services count.

Run it with `python -m lab.estimate`; docs/guides/token-estimates.md says how to read it.
"""
