"""Bugs on managed services: what they refuse, and what cannot be read there."""

from __future__ import annotations

from lab.mutants.bug import Bug

CONNECTION = "brainq/adapters/redis/connection.py"
QUEUES = "brainq/adapters/redis/queues.py"
SERVICES = "brainq/cli/doctor/services.py"
RIGHTS = "brainq/cli/doctor/rights.py"
MANAGED = "tests/integration/cli/test_managed.py"
TURN = (f"{MANAGED}::test_a_turn_needs_nothing_that_a_service_refuses",)
WORKERS = (f"{MANAGED}::test_workers_need_nothing_that_a_service_refuses",)
DOCTOR = (f"{MANAGED}::test_doctor_says_what_cannot_be_read",)
DENIED = ("tests/unit/adapters/redis/test_denied.py",)
ACKS = ("tests/unit/adapters/redis/test_failover.py::test_it_starts_if_nobody_may_wait_for_replicas",)
PREFIX = ("tests/unit/runtime/test_cluster_url.py::test_a_prefix_with_a_hash_tag_is_the_tag_of_a_cluster",)
USERS = ("tests/integration/adapters/celery/test_redis_files.py::test_what_a_user_may_not_do_is_named",)

BUGS = (
    Bug(
        "a server that does not permit INFO fails",
        CONNECTION,
        'return "" if name == "INFO" and is_denied(error) else error',
        "return error",
        TURN,
    ),
    Bug(
        "a command that was removed is not taken for denied",
        CONNECTION,
        "(ERR )?(unknown (sub)?command|",
        "(ERR )?(never heard of|",
        DENIED,
    ),
    Bug("a full disk is taken for a denied command", CONNECTION, "bool(_DENIED.match(str(reply)))", "True", DENIED),
    Bug(
        "a worker without Celery needs CLIENT ID",
        QUEUES,
        "with suppress(redis.ResponseError):",
        "with suppress(ZeroDivisionError):",
        WORKERS,
    ),
    Bug(
        "a worker without Celery needs CLIENT UNBLOCK",
        QUEUES,
        'self._client.replies([("CLIENT", "UNBLOCK", self._id)])',
        'self._client.many([("CLIENT", "UNBLOCK", self._id)])',
        WORKERS,
    ),
    Bug(
        "remote control needs PSUBSCRIBE",
        "brainq/adapters/celery/celery57/transport.py",
        '(pubsub.psubscribe if "*" in topic else pubsub.subscribe)(topic)',
        "pubsub.psubscribe(topic)",
        WORKERS,
    ),
    Bug(
        "a write needs WAIT",
        "brainq/adapters/redis/failover.py",
        "if is_denied(acknowledged):",
        "if acknowledged is None:",
        ACKS,
    ),
    Bug(
        "a server of unknown version is too old",
        "brainq/app/wiring/preflight.py",
        "if spoken and tuple(",
        "if not spoken or tuple(",
        DOCTOR,
    ),
    Bug("an unknown policy is a wrong one", SERVICES, "if policy is None:", 'if policy == "":', DOCTOR),
    Bug(
        "an operator of a service is told to run CONFIG SET",
        SERVICES,
        "check_appendonly(info, is_managed=is_denied(configured))",
        "check_appendonly(info)",
        DOCTOR,
    ),
    Bug(
        "rights: what workers can do without is needed",
        RIGHTS,
        "if any(command[0] not in LOST for command in refused):",
        "if refused:",
        USERS,
    ),
    Bug(
        "a connection that was cut while idle is used again",
        CONNECTION,
        "> CHECK_AFTER_IDLE_S and _has_hung_up(line.connection)",
        "> CHECK_AFTER_IDLE_S and not line.is_open",
        ("tests/integration/fleet/test_idle.py",),
    ),
    Bug(
        "nodes of a cluster with TLS are asked without it",
        "brainq/adapters/redis/slot_primary.py",
        'self.has_tls = seeds[0].get("connection_class") is SSLConnection',
        'self.has_tls = seeds[0].get("connection_class") is Connection',
        ("tests/integration/fleet/test_tls.py",),
    ),
    Bug(
        "streams of a cluster speak no TLS",
        "brainq/adapters/redis/async_connection.py",
        "kind = AsyncSlotTlsConnection if slot.has_tls else",
        "kind = AsyncSlotTlsConnection if not slot.has_tls else",
        ("tests/integration/fleet/test_tls.py",),
    ),
    Bug(
        "a prefix in braces is no tag of a cluster",
        "brainq/runtime/settings/cluster_url.py",
        'prefix.strip("{}:")',
        'prefix.rstrip(":")',
        PREFIX,
    ),
)
