"""Judges: scores of answers, asked for by the prompt a turn was answered with.

    turn ends ─ step "judges" ─► a pending row a judge ─► doorbell on brainq.judges ─► JudgeRunner
                                                                                          │
                       row: score and reason, or dead with an error ◄── case ─► judge ────┘

The row in SQL is the truth: it is claimed, settled and retried there; a doorbell only says where to look."""
