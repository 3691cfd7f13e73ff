"""The same kill, in a write and just before it, at what else people run agents with: `python -m lab.faults.rivals`.

What runs in a rival's own environment imports the standard library and `lab.faults.rivals.desk`, and nothing of brainq.
"""
