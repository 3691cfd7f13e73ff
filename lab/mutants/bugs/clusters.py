"""Bugs of finding and following the primary of a slot of a Redis Cluster, and the primary that Sentinel names."""

from __future__ import annotations

from lab.mutants.bug import Bug

URL = "brainq/runtime/settings/cluster_url.py"
SLOT = "brainq/adapters/redis/slot_primary.py"
CUTS = "brainq/runtime/failover.py"
URLS = ("tests/unit/runtime/test_cluster_url.py",)
REPLIES = ("tests/unit/adapters/redis/test_slot_primary.py",)
FAILOVER = ("tests/unit/test_failover.py",)
CLUSTER = ("tests/integration/fleet/test_cluster.py",)

BUGS = (
    Bug(
        "two cells of a cluster share a slot",
        "brainq/runtime/settings/deployment.py",
        "url_in_slot(url, self.prefix, cell.name)",
        'url_in_slot(url, self.prefix, "")',
        URLS,
    ),
    Bug(
        "the tag of a password is taken for the URL's",
        URL,
        'r"[?&]tag=", url.rpartition("@")[2])',
        'r"[?&]tag=", url)',
        URLS,
    ),
    Bug("a cluster's database is ignored", URL, 'not in ("", "0")', 'in ("x",)', URLS),
    Bug("the seeds after the first have no login", URL, "{f'{login}@' if login else ''}{host}", "{host}", URLS),
    Bug(
        "keys of a cluster have the prefix of the settings",
        URL,
        'f"{{{parse_cluster_url(url).tag}}}:"',
        'f"{parse_cluster_url(url).tag}:"',
        URLS,
    ),
    Bug(
        "a primary that failed is still one",
        SLOT,
        'node.get("health", "online") == "online"',
        'node.get("health", "online") != ""',
        REPLIES,
    ),
    Bug("an address of ? is taken for a host", SLOT, 'not in (None, "", "?")', 'not in (None, "")', REPLIES),
    Bug(
        "only the first range of a shard counts",
        SLOT,
        "for first, last in shard.slots)",
        "for first, last in shard.slots[:1])",
        REPLIES,
    ),
    Bug(
        "with TLS the plain port is used",
        SLOT,
        '("tls-port", "port") if tls else',
        '("port", "tls-port") if tls else',
        REPLIES,
    ),
    Bug("the first node that answers is believed", SLOT, "if votes[primary] == 2:", "if votes[primary] == 1:", REPLIES),
    Bug("nodes that were learned are not asked", SLOT, "[*self._learned, *self.seeds]", "self.seeds", REPLIES),
    Bug(
        "a refused login is taken for a node that is away",
        SLOT,
        "except (redis.AuthenticationError, NoPermissionError):",
        "except NotImplementedError:",
        REPLIES,
    ),
    Bug("CLUSTER SLOTS is read with the replica first", SLOT, "places[0], places))", "places[-1], places))", REPLIES),
    Bug(
        "MOVED is an error of the command",
        SLOT,
        "ELSEWHERE = (AskError, TryAgainError, ClusterDownError)",
        "ELSEWHERE = (TryAgainError, ClusterDownError)",
        CLUSTER,
    ),
    Bug(
        "a connection to a node without the slot is kept",
        SLOT,
        "            self.disconnect()\n            raise redis.ConnectionError",
        "            raise redis.ConnectionError",
        CLUSTER,
    ),
    Bug("connections of another slot's cell are cut, too", CUTS, "return has_service and (", "return (", FAILOVER),
    Bug(
        "a primary that was replaced once is never believed again",
        CUTS,
        "if found and time.monotonic() < found.until_s",
        "if found",
        FAILOVER,
    ),
    Bug(
        "an old primary is believed at once",
        CUTS,
        "if found and time.monotonic() < found.until_s",
        "if found and time.monotonic() > found.until_s",
        FAILOVER,
    ),
    Bug(
        "workers listen to the first seed",
        "brainq/adapters/celery/app.py",
        "return ClusterTransport if tag_of(self) else CHECKED",
        "return CHECKED",
        CLUSTER,
    ),
    Bug(
        "celery inspect asks the first seed",
        "brainq/adapters/celery/app.py",
        "return PooledClusterTransport if tag_of(self) else super().get_transport_cls()",
        "return super().get_transport_cls()",
        CLUSTER,
    ),
    Bug(
        "a node's URL is taken for that of a whole server",
        "brainq/app/wiring/wiring.py",
        "if not is_cluster and self.state",
        "if is_cluster and self.state",
        CLUSTER,
    ),
)
