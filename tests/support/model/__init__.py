"""The seeded model test: the real machines over real scripts, interleaved one Redis command at a time.

Every process is a set of greenlets. Each gives way before each command, so that a seed decides who runs next,
which doorbell is lost, rung twice or kept for later, which reply never arrives, whose lease ends and who dies.
After every script the state is read and compared with what it was; when the faults are over, everything has
to come to its end by itself. `BRAINQ_MODEL_SEED=n` runs one schedule and prints what happened in it.
"""
