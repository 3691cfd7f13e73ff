"""The machinery that runs one call: its function, its deadline, and its result.

    BoundedToolExecutor.run ─┬─ plain function  ─► a pooled daemon thread, abandoned at the deadline
                             ├─ async function  ─► the process's event loop, cancelled at the deadline
                             └─ process tool    ─► a child process, killed with its group at the deadline

A function may end by itself or be cut off. Whichever happens first decides the outcome. If a function ends after it was
cut off, its outcome is reported to `on_late` and changes nothing.

A function may also return an object (`Pending`, `ChildTurn`) that makes its call wait for a result from outside. The
call is then parked, and holds no worker and no lane until the result comes. A cancel of the turn reaches every running
call through `RedisStopSignals`; each call has a grace period and is then cut off.
"""
