"""Faults in public: real processes are killed, frozen and cut off under load, and an outside server says what ran.

`make faults`, or `python -m lab.faults`, runs the table and writes docs/reference/faults.md.
"""
