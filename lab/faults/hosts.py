"""Hosts of their own on one machine: network namespaces, each behind a wire that is cut, deafened or narrowed.

        this machine                  the wire, a namespace            the host, a namespace
 servers' bridge 10.213.n.1 ── port ── far │ bridge │ near ── eth0     to Redis and Postgres
 world's bridge  10.214.n.1 ── port ───────────────────────── eth1     to the effect server, and from HTTP clients

A wire drops silently: neither side's TCP hears of it, as between real machines. It takes root and iproute2.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from types import TracebackType
from typing import Any, Literal, Self

Way = Literal["to the host", "from the host"]
BOTH: tuple[Way, ...] = ("to the host", "from the host")
PORTS: dict[Way, str] = {"to the host": "near", "from the host": "far"}
"""Of the wire: what leaves it by `near` goes to the host."""

NOTHING = ("tbf", "rate", "8bit", "burst", "1", "limit", "1")
"""A shaper into whose bucket no packet fits: it drops every one, and counts it."""

NARROW = ("tbf", "rate", "256kbit", "burst", "3kb", "latency", "100ms")
LOSSY = ("netem", "delay", "50ms", "10ms", "loss", "5%")
NUMBERS = 250


class Host:
    """One host. `space` is its namespace, `address` is on the servers' side, `world` on the world's."""

    def __init__(self, network: int, number: int, name: str) -> None:
        self.name = name
        self.space, self.wire = f"bq{network}-{name}", f"bq{network}-{name}-wire"
        self.address, self.world = f"10.213.{network}.{number + 2}", f"10.214.{network}.{number + 2}"
        self._bridges = bridge_names(network)
        self._world_port = f"bq{network}w{number}"
        self._server_port = f"bq{network}s{number}"
        self._dropped = 0

    def start(self) -> None:
        for space in (self.space, self.wire):
            _ip("netns", "add", space)
            _ip("link", "set", "lo", "up", space=space)
        _ip("link", "add", self._server_port, "type", "veth", "peer", "name", "far", "netns", self.wire)
        _ip("link", "add", "near", "type", "veth", "peer", "name", "eth0", "netns", self.space, space=self.wire)
        _ip("link", "add", self._world_port, "type", "veth", "peer", "name", "eth1", "netns", self.space)
        _ip("link", "add", "bridge", "type", "bridge", space=self.wire)
        for port in ("far", "near"):
            _ip("link", "set", port, "master", "bridge", "up", space=self.wire)
        _ip("link", "set", "bridge", "up", space=self.wire)
        for link, address in (("eth0", self.address), ("eth1", self.world)):
            _ip("address", "add", f"{address}/24", "dev", link, space=self.space)
            _ip("link", "set", link, "up", space=self.space)
        for port, bridge in zip((self._server_port, self._world_port), self._bridges, strict=True):
            _ip("link", "set", port, "master", bridge, "up")

    def stop(self) -> None:
        for space in (self.space, self.wire):
            subprocess.run(["ip", "netns", "delete", space], capture_output=True, check=False)

    def cut(self, *, world: bool) -> None:
        """Disconnect the host on the servers' side, and with `world` on both sides."""
        _ip("link", "set", "near", "down", space=self.wire)
        if world:
            _ip("link", "set", self._world_port, "down")

    def shape(self, ways: Sequence[Way], how: Sequence[str]) -> None:
        """Shape the traffic of these directions with tc. `mend` ends it."""
        for way in ways:
            _tc("qdisc", "replace", "dev", PORTS[way], "root", *how, space=self.wire)

    def mend(self) -> None:
        """Connect the host on both sides, and stop shaping its traffic."""
        self._dropped = self.dropped
        _ip("link", "set", self._world_port, "up")
        for port in PORTS.values():
            unshape = ["tc", "-n", self.wire, "qdisc", "del", "dev", port, "root"]
            subprocess.run(unshape, capture_output=True, check=False)
            _ip("link", "set", port, "up", space=self.wire)

    @property
    def dropped(self) -> int:
        """Return how many packets the wire has dropped, by the kernel's count."""
        shapers: list[dict[str, Any]] = json.loads(_tc("-s", "-j", "qdisc", "show", space=self.wire))
        return self._dropped + sum(shaper.get("drops", 0) for shaper in shapers if shaper["kind"] in ("tbf", "netem"))

    @property
    def unplugged(self) -> int:
        """Return how often the link to the servers has lost its carrier, by the kernel's count."""
        count = ["ip", "netns", "exec", self.space, "cat", "/sys/class/net/eth0/carrier_down_count"]
        return int(subprocess.run(count, capture_output=True, text=True, check=True).stdout)


class HostNetwork:
    """Hosts by name, and this machine's addresses on the servers' side and on the world's. `with` makes and ends it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._number = _claim_number()
        self.servers, self.world = f"10.213.{self._number}.1", f"10.214.{self._number}.1"
        self.hosts = {name: Host(self._number, number, name) for number, name in enumerate(names)}

    def __enter__(self) -> Self:
        try:
            for bridge, address in zip(bridge_names(self._number), (self.servers, self.world), strict=True):
                _ip("address", "add", f"{address}/24", "dev", bridge)
                _ip("link", "set", bridge, "up")
            for host in self.hosts.values():
                host.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the host. A second call does nothing."""
        for host in self.hosts.values():
            host.stop()
        for bridge in bridge_names(self._number):
            subprocess.run(["ip", "link", "delete", bridge], capture_output=True, check=False)


def bridge_names(network: int) -> tuple[str, str]:
    """Return the names of the bridges on the servers' side and on the world's."""
    return f"bq{network}servers", f"bq{network}world"


@cache
def no_hosts() -> str:
    """Return why there can be no hosts here, or "" if there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "hosts are network namespaces, which only root may make, on Linux"
    if missing := [program for program in ("ip", "tc") if shutil.which(program) is None]:
        return f"{' and '.join(missing)} not found: apt-get install iproute2"
    try:
        with HostNetwork(("probe",)) as network, socket.create_server((network.servers, 0)) as server:
            where = f"{(network.servers, server.getsockname()[1])!r}"
            asks = f"import socket; socket.create_connection({where}, 5)"
            inside = ["ip", "netns", "exec", network.hosts["probe"].space, sys.executable, "-S", "-c", asks]
            subprocess.run(inside, capture_output=True, check=True)
            network.hosts["probe"].shape(BOTH, NOTHING)
    except (OSError, subprocess.CalledProcessError) as refused:
        return f"network namespaces cannot be made or joined here ({_reason(refused)})"
    return ""


@cache
def no_netem() -> str:
    """Return why packets cannot be lost at random here, or "" if they can."""
    if why := no_hosts():
        return why
    with HostNetwork(("probe",)) as network:
        try:
            network.hosts["probe"].shape(BOTH, LOSSY)
        except subprocess.CalledProcessError as refused:
            return f"this kernel has no netem ({_reason(refused)})"
    return ""


def _reason(refused: OSError | subprocess.CalledProcessError) -> str:
    said = refused.stderr if isinstance(refused, subprocess.CalledProcessError) else str(refused)
    lines = (said if isinstance(said, str) else said.decode()).strip().splitlines()
    return lines[-1] if lines else type(refused).__name__


def _claim_number() -> int:
    """Return the number of a free network, which is one whose bridge could be created."""
    for step in range(NUMBERS):
        number = 1 + (os.getpid() + step) % NUMBERS
        servers, world = bridge_names(number)
        make = ["ip", "link", "add", servers, "type", "bridge"]
        made = subprocess.run(make, capture_output=True, text=True, check=False)
        if made.returncode == 0:
            _ip("link", "add", world, "type", "bridge")
            return number
        if "exists" not in made.stderr:
            raise OSError(made.stderr.strip())
    raise OSError(f"all {NUMBERS} networks are taken")


def _ip(*words: str, space: str = "") -> str:
    return _run("ip", words, space)


def _tc(*words: str, space: str) -> str:
    return _run("tc", words, space)


def _run(program: str, words: Sequence[str], space: str) -> str:
    """Run the command, and return what it prints. Raises CalledProcessError."""
    inside = ("-n", space) if space else ()
    return subprocess.run([program, *inside, *words], capture_output=True, text=True, check=True).stdout
