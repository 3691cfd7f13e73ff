"""The coordinator: deciding what a turn does next, and doing it.

Redis is authoritative for who may advance a turn; this package decides and acts under its fence.

    doorbell ─► claim ─► look ─► decide ─┬─ Think ─► prepare ─► model ─► gates ─► commit calls ─► (pools)
                                         │                          └─► answer ─┐
                                         └─ End ──────────────────────────────► end ─► (finalizer)

Each advance makes at most one model call, commits, and exits. Nothing waits for anything.
"""
