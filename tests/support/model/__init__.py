"""The seeded model test: the real machines over real scripts, interleaved one Redis command at a time.

Every process is a set of greenlets. Each gives way before each command, so that a seed decides who runs next,
which doorbell is lost, rung twice or kept for later, which reply never arrives, whose lease ends and who dies.
People steer, hold, approve, pause, cancel, and bring results from outside meanwhile. After every script the state
is read and compared with what it was; when the faults are over people go on for a while, and once they have gone
home everything has to come to its end by itself. `BRAINQ_MODEL_SEED=n`, with pytest's `-s`, runs one schedule and
prints what happened.
"""
