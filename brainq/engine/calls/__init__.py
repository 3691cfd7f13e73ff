"""The run of one call: its function, its deadline, and its result.

    BoundedToolExecutor.run ─┬─ plain function  ─► a pooled daemon thread, abandoned at the deadline
                             ├─ async function  ─► the process's event loop, cancelled at the deadline
                             └─ process tool    ─► a child process, killed with its group at the deadline

The function's end and the cut race: the first decides the outcome, and the second is reported to `on_late` and changes
nothing.

A function may also return that its call waits for a result from outside (`Pending`, `ChildTurn`). The call is then
parked, and holds no worker and no lane until the result comes. A cancel of the turn reaches every running call through
`RedisStopSignals`; each call has a grace period and is then cut off.
"""
