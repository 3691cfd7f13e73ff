"""The coordinator: it decides what a turn does next, and does it.

Redis is authoritative for who may advance a turn. This package decides, and acts under the fence of its claim.

    doorbell ─► claim ─► look ─► decide ─┬─ Think ─► prepare ─► model ─► gates ─► commit calls ─► (pools)
                                         │                          └─► answer ─┐
                                         └─ End ──────────────────────────────► end ─► (finalizer)

Each advance makes at most one model call, commits, and exits. No advance waits for another task.
"""
