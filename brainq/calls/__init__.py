"""Running one call: the function, its deadline, and what came of it.

    BoundedToolExecutor.run ─┬─ plain function  ─► a pooled daemon thread, abandoned at the deadline
                             ├─ async function  ─► the process's event loop, cancelled at the deadline
                             └─ process tool    ─► a child process, killed with its group at the deadline

Whichever of the function's end and the cut comes first decides the outcome; what comes second is reported to
`on_late` and changes nothing.

A function may also return that its call is to wait for somebody outside (`Pending`, `ChildTurn`): then the call parks,
and holds no worker and no lane until the result comes. A cancel of the turn reaches every running call through
`Stops`; each has its grace, and is then cut.
"""
