# pyright: basic
"""Flower's settings. `brainq flower` passes them to Celery's `flower` command.

Flower only shows what it receives: task events are lost while it is not running. It has no login by default, so it
listens on loopback only and changes nothing. To give people access, put a proxy that authenticates in front of it, or
set FLOWER_BASIC_AUTH=user:password. Either way the proxy must refuse /metrics and /healthcheck from outside, because
Flower never requires a password there. Never set FLOWER_UNAUTHENTICATED_API.
"""

address = "127.0.0.1"
port = 5555

# The page cannot revoke tasks, shut down workers or send tasks. Cancel a turn with brainq.
read_only = True

# The number of tasks and workers kept in memory. The default of 100,000 tasks takes gigabytes.
max_tasks = 10_000
max_workers = 500
# A worker leaves the page this many seconds after its last heartbeat. This also bounds the number of metric labels.
purge_offline_workers = 300

# Flower's database is a pickle, and anybody who can write that file can run code.
persistent = False
natural_time = True
# A task's id begins with the id of its turn, and its arguments contain it. Search for a turn id to see its tasks.
tasks_columns = "name,uuid,state,args,received,started,runtime,worker"
task_runtime_metric_buckets = [0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0]
