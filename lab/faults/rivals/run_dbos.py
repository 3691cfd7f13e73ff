# pyright: basic, reportMissingImports=false
"""DBOS: a workflow of three steps, on Postgres. After a crash its start recovers what was begun."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from dbos import DBOS, SetWorkflowID

from lab.compare.postgres import postgres
from lab.faults.rivals.desk import Desk, role_and_desk, write


def serve(desk: Desk) -> None:
    with postgres() as url:
        (desk.directory / "url").write_text(url)
        sys.stdin.read()


def work(desk: Desk) -> None:
    url = desk.directory / "url"
    while not url.exists():
        time.sleep(0.1)
    DBOS(
        config={
            "name": "faults",
            "application_version": "1",
            "system_database_url": url.read_text(),
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )
    options = {"max_recovery_attempts": 0} if desk.setting == "max_recovery_attempts=0" else {}

    @DBOS.step()
    def model(turn: str) -> str:
        return "asked"

    @DBOS.step()
    def write_step(turn: str) -> str:
        return write(turn)

    @DBOS.step()
    def answer(said: str) -> str:
        return said

    @DBOS.workflow(**options)
    def agent_turn(turn: str) -> str:
        model(turn)
        return answer(write_step(turn))

    def run_turn(turn: str) -> None:
        try:
            with SetWorkflowID(turn):
                handle = DBOS.start_workflow(agent_turn, turn)
            said = handle.get_result()
        except BaseException as error:  # DBOS tells of a workflow that it gave up by one that is not an Exception
            desk.end(turn, "failed", repr(error))
        else:
            desk.end(turn, "completed", said)

    DBOS.launch()
    with ThreadPoolExecutor(16) as threads:
        for turn in desk.fresh():
            threads.submit(run_turn, turn)


if __name__ == "__main__":
    role, found = role_and_desk()
    os.environ.pop("PGHOST", None)
    serve(found) if role == "server" else work(found)
