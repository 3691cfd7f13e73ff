# pyright: basic
"""Flower's settings: `brainq flower` gives them to Celery's `flower` command.

Flower is a picture, not a source of truth: task events are lost while it is away. It has no login of its own
here, so it listens on loopback only and changes nothing. To give people access, put a proxy that
authenticates in front of it, or set FLOWER_BASIC_AUTH=user:password. Either way the proxy must refuse
/metrics and /healthcheck from outside: Flower never asks for a password there.
Never set FLOWER_UNAUTHENTICATED_API.
"""

address = "127.0.0.1"
port = 5555

# No revoking, no shutting down of workers, no sending of tasks from the browser. Cancel a turn with brainq.
read_only = True

# Tasks and workers kept in memory; the default of 100,000 tasks takes gigabytes.
max_tasks = 10_000
max_workers = 500
# Seconds after its last heartbeat that a worker leaves the page; also keeps metric labels from piling up.
purge_offline_workers = 300

# Its database is a pickle; whoever can write that file runs code.
persistent = False
natural_time = True
# A task's id begins with its turn's id, and its arguments hold it: search for a turn id to see the turn.
tasks_columns = "name,uuid,state,args,received,started,runtime,worker"
task_runtime_metric_buckets = [0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0]
