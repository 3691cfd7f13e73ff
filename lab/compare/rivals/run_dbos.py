# pyright: basic, reportMissingImports=false
"""DBOS: durable workflows in one process, on the Postgres that its documentation recommends for production.

The model, each tool and each finalizer step is a step; the two that write SQL are transactions of a datasource, which
commit with the step's own record. Reads are steps started together and gathered.
"""

from __future__ import annotations

import asyncio
import time
from uuid import uuid4

from dbos import DBOS, AsyncSQLAlchemyDatasource, SetWorkflowID
from sqlalchemy import text

from lab.compare import turn
from lab.compare.postgres import postgres
from lab.compare.serving import Ended, Options, options, serve_async


async def run_dbos(given: Options, url: str) -> None:
    DBOS(
        config={
            "name": "compare",
            "application_version": "1",
            "system_database_url": url,
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )
    database = await AsyncSQLAlchemyDatasource.create(url)

    @DBOS.step()
    async def model(messages: list[str]) -> list[tuple[str, str]] | str:
        await asyncio.sleep(turn.MODEL_S)
        if len(messages) > 1:
            return turn.ANSWER
        return [*(("read_note", path) for path in turn.READS), ("write_note", turn.WRITE[0])]

    @DBOS.step()
    async def read_note(path: str) -> str:
        await asyncio.sleep(turn.READ_S)
        return turn.note(path)

    @DBOS.step()
    async def write_note(path: str, text: str) -> str:
        await asyncio.sleep(turn.WRITE_S)
        return turn.wrote(path, text)

    @database.transaction()
    async def log(turn_id: str, answer: str) -> None:
        await database.sql_session().execute(
            text("INSERT INTO logs VALUES (:turn_id, :answer)"), {"turn_id": turn_id, "answer": answer}
        )

    @database.transaction()
    async def decision(turn_id: str, calls: int) -> None:
        await database.sql_session().execute(
            text("INSERT INTO decisions VALUES (:turn_id, :calls)"), {"turn_id": turn_id, "calls": calls}
        )

    @DBOS.step()
    async def result() -> float:
        return time.time()

    @DBOS.step()
    async def nothing_to_do(name: str) -> None:
        return None

    @DBOS.workflow()
    async def agent_turn(question: str) -> tuple[str, int, int, float]:
        turn_id = DBOS.workflow_id
        assert turn_id is not None
        messages = [question]
        asked = await model(messages)
        assert not isinstance(asked, str)
        reads = [read_note(path) for name, path in asked if name == "read_note"]
        for answered in await asyncio.gather(*reads, return_exceptions=True):
            if isinstance(answered, BaseException):
                raise answered
            messages.append(answered)
        messages.append(await write_note(*turn.WRITE))
        answer = await model(messages)
        assert isinstance(answer, str)
        final_steps, result_at = 0, 0.0
        for name in turn.FINAL_STEPS:
            if name == "log":
                await log(turn_id, answer)
            elif name == "decision":
                await decision(turn_id, len(messages) - 1)
            elif name == "result":
                result_at = await result()
            else:
                await nothing_to_do(name)
            final_steps += 1
        return answer, len(messages) - 1, final_steps, result_at

    @database.transaction()
    async def make_tables() -> None:
        session = database.sql_session()
        await session.execute(text("CREATE TABLE logs (turn_id TEXT PRIMARY KEY, answer TEXT NOT NULL)"))
        await session.execute(text("CREATE TABLE decisions (turn_id TEXT PRIMARY KEY, calls INTEGER NOT NULL)"))

    async def one() -> Ended:
        submitted_at = time.time()
        with SetWorkflowID(uuid4().hex):
            handle = await DBOS.start_workflow_async(agent_turn, turn.QUESTION)
        answer, calls, final_steps, result_at = await handle.get_result()
        return Ended(result_at - submitted_at, answer, calls, final_steps)

    async def run(count: int) -> list[Ended]:
        return list(await asyncio.gather(*(one() for _ in range(count))))

    DBOS.launch()
    await make_tables()
    await serve_async(run)
    DBOS.destroy()


if __name__ == "__main__":
    with postgres() as url:
        asyncio.run(run_dbos(options(), url))
