"""A deterministic simulation: whole turns run by the real machines, scripts and tables, on one thread and a virtual
clock.

Coordinators, runners, finalizers and sweepers are simulated processes, each with a few tasks. A seed decides which task
runs next, which message or command is lost or delayed, which process dies or freezes, and what the model and people do.
The same seed repeats the same run: `python -m lab.simulate --seed 7 --turns 1000`.
"""
