"""Gates: what a call must pass before it may start. One gate a file; `order` runs them.

    model's call ─► replay ─► blocked ─► pre-hook ─► validation (with repair) ─► Allowed
                      └─────────┴───────────┴──────────────┴──► Denied: the model reads why

They run in the coordinator and touch nothing: given the facts of the turn, the answer is always the same.
"""
