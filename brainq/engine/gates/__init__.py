"""Gates: the checks that a call must pass before it may start. Each gate has a file.

    model's call ─► replay ─► blocked ─► pre-hook ─► validation (with repair) ─► Allowed
                      └─────────┴───────────┴──────────────┴──► Denied: the model reads why

Gates run in the coordinator and are pure: the same facts of the turn always give the same answer.
"""
