"""The gateway on a host of its own that is cut off from Redis and Postgres, while people submit over HTTP."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

import httpx

from brainq.app.access import Tokens, Verb
from brainq.app.devserver.local_fleet import OwnedProcess, wait_until_ready
from lab.faults.effects import PATIENCE_S, ROOT, NotSeen, wait_for
from lab.faults.fault import Fault, Pace
from lab.faults.hosts import Host
from lab.faults.load import Producer
from lab.faults.stage import GATEWAY_HOST, Stage, no_network

PORT = 8321
PEOPLE = 4
ANSWER_S = 5.0
"""Then a person's client gives a request up, and sends it again with its key."""

AGAIN_S = 0.3


class HostedGateway(OwnedProcess):
    """A gateway that listens on the world's side of a host; without a host, on this machine's loopback."""

    def __init__(self, directory: Path, host: Host | None, environment: Mapping[str, str]) -> None:
        super().__init__("gateway", directory / "gateway.log")
        address = "127.0.0.1" if host is None else host.world
        self.url = f"http://{address}:{PORT}"
        self._inside = () if host is None else ("ip", "netns", "exec", host.space)
        listens = {"BRAINQ_HTTP_HOST": address, "BRAINQ_HTTP_PORT": str(PORT)}
        self._environment = {**os.environ, **environment, **listens}

    def launch(self) -> None:
        command = [*self._inside, sys.executable, "-m", "brainq.workers.gateway"]

        def spawn(owned: dict[str, str], log: int, inherited: int) -> subprocess.Popen[bytes]:
            env = {**self._environment, **owned}
            return subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log, pass_fds=(inherited,))

        self._launch(spawn)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.close_pipe()


class People:
    """Some submit one turn after the other, each request with a key of its own. `accepted`: turns by key; `refused`:
    requests that got no turn, and were sent again."""

    def __init__(self, url: str, token: str, producer: Producer) -> None:
        self.accepted: dict[str, str] = {}
        self.refused = 0
        self.failures: list[str] = []
        self._producer = producer
        login = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=url, headers=login, timeout=ANSWER_S, trust_env=False)
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, name="person", daemon=True) for _ in range(PEOPLE)]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let each have its last turn, then send every request once more: its key must still mean the same turn."""
        self._over.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        for key, turn in self.accepted.items():
            if (again := self._accepted(key)) != turn:
                self.failures.append(f"request {key} has turns {turn} and {again}")
        self._http.close()

    def _run(self) -> None:
        while not self._over.is_set():
            key = uuid.uuid4().hex
            try:
                turn = self._accepted(key)
            except NotSeen as failure:
                self.failures.append(str(failure))
                return
            self.accepted[key] = turn
            self._producer.submitted.at[turn] = time.monotonic()
            self._over.wait(PEOPLE / self._producer.rate)

    def _accepted(self, key: str) -> str:
        """The turn of this request, however often it has to be sent. Raises NotSeen after two minutes, and at once
        for an answer other than *accepted* and *unavailable*."""
        body, end = {"session_id": f"people:{key}", "user_message": "order"}, time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                answer = self._http.post("/v1/turns", json=body, headers={"Idempotency-Key": key})
            except httpx.HTTPError:
                self.refused += 1
                continue
            if answer.status_code == HTTPStatus.ACCEPTED:
                return str(answer.json()["turn_id"])
            if answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
                raise NotSeen(f"request {key} was answered {answer.status_code}: {answer.text}")
            self.refused += 1
            time.sleep(AGAIN_S)
        raise NotSeen(f"request {key} was not accepted in {PATIENCE_S:g} s")


class HostGateway(Fault):
    name = "host-gateway"
    title = "the gateway's host cut off from Redis and Postgres: people send their requests again, with their keys"
    kind = "hosts"

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.people: People | None = None
        self.refused = 0

    @classmethod
    def why_not(cls) -> str:
        return no_network()

    def inject(self, stage: Stage) -> None:
        host = stage.network.hosts[GATEWAY_HOST]
        gateway = HostedGateway(stage.directory, host, stage.environment)
        gateway.launch()
        try:
            wait_until_ready([gateway])
            verbs = (Verb.SUBMIT, Verb.READ)
            token = Tokens(stage.wiring.store).create("people", ["people:"], verbs).text
            self.people = People(gateway.url, token, stage.producer)
            self._cut(host, self.people)
        finally:
            host.mend()
            if self.people is not None:
                self.people.end()
            gateway.stop()

    def _cut(self, host: Host, people: People) -> None:
        people.begin()
        wait_for(lambda: len(people.accepted) > PEOPLE, "people's turns are accepted")
        before, refused, self.began = host.unplugged, people.refused, time.monotonic()
        host.cut(world=False)
        time.sleep(self.pace.frozen_s)
        self.refused = people.refused - refused if host.unplugged > before else 0

    def fired(self, stage: Stage) -> int:
        """Requests that were not accepted meanwhile. Raises AssertionError where a key has two turns, or none."""
        assert self.people is None or not self.people.failures, self.people.failures
        return self.refused
