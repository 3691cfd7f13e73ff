"""The Protocols between the machines and what keeps their truth: one an adapter, named like it.

`Turns`, `Calls`, `Lanes` and so on are fitted by the `Redis...` class of that name in `state/`; `TurnRows`, `CallRows`
and so on by the repository of that table in `store/`; the few others by the machine that each names. `wiring/` puts
the real ones in, and pyright proves there that they fit.
"""
