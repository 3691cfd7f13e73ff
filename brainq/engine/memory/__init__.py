"""Memory, learning and judges: what is done with a turn after its answer.

Judges score answers. The prompt with which a turn was answered names them.

    turn ends ─ step "judges" ─► a pending row a judge ─► doorbell on brainq.judges ─► JudgeRunner
                                                                                          │
                       row: score and reason, or dead with an error ◄── case ─► judge ────┘

The row in SQL is authoritative: it is claimed, settled and retried there. A doorbell only tells a worker to read it.
"""
