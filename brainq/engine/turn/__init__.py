"""The coordinator, which decides what a turn does next and does it.

Redis is authoritative for who may advance a turn. This package decides, and acts under the fence of its claim.

    doorbell ─► claim ─► look ─► decide ─┬─ Think ─► prepare ─► model ─► gates ─► commit calls ─► (pools)
                                         │                          └─► answer ─┐
                                         └─ End ──────────────────────────────► end ─► (finalizer)

An advance is what one doorbell causes. It makes at most one model call, commits, and exits. No advance waits for
another task.
"""
