"""A deterministic simulation: whole turns by the real machines, scripts and tables, on one thread and a virtual clock.

Coordinators, runners, finalizers and sweepers are processes of their own here, each a few tasks. A seed decides which
task goes on, what a message or a command meets on its way, which process dies or stands still, and what the model and
people do. The same seed is the same run: `python -m lab.simulate --seed 7 --turns 1000`.
"""
