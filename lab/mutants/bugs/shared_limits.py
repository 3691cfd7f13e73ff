"""Limits that several cells share."""

from __future__ import annotations

from lab.mutants.bug import Bug

BUGS = (
    Bug(
        "what a cell gave back is another's before it counts no more",
        "brainq/contracts/limit_share.py",
        "max(share, report.share, report.used)",
        "max(share, 0)",
        ("tests/unit/test_limit_shares.py",),
    ),
    Bug(
        "a share is put by who looked before another did",
        "brainq/adapters/redis/lua/share_put.lua",
        "~= mark then",
        "> mark + 1 then",
        ("tests/lua/test_shared_limits.py",),
    ),
    Bug(
        "a cell has its share for ever",
        "brainq/adapters/redis/lua/lib/cell_share.lua",
        "now < tonumber(s.share_until or 0) and",
        "s.share_until and",
        ("tests/lua/test_shared_limits.py",),
    ),
)
