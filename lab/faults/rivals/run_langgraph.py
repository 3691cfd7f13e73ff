# pyright: basic, reportMissingImports=false
"""LangGraph: a graph with a SQLite checkpointer. After a crash the caller calls again, without input."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from lab.faults.rivals.desk import Desk, role_and_desk, write


class State(TypedDict):
    turn: str
    said: str


async def model(state: State) -> dict[str, Any]:
    return {"said": "asked"}


async def write_node(state: State) -> dict[str, Any]:
    return {"said": await asyncio.to_thread(write, state["turn"])}


async def answer(state: State) -> dict[str, Any]:
    return {"said": state["said"]}


async def run_turn(graph: Any, desk: Desk, turn: str) -> None:
    config = {"configurable": {"thread_id": turn}}
    is_begun = bool((await graph.aget_state(config)).next)
    try:
        state = await graph.ainvoke(None if is_begun else {"turn": turn, "said": ""}, config, durability=desk.setting)
    except Exception as error:
        desk.end(turn, "failed", repr(error))
    else:
        desk.end(turn, "completed", state["said"])


async def main() -> None:
    _, desk = role_and_desk()
    graph = StateGraph(State)
    for name, node in (("model", model), ("write", write_node), ("answer", answer)):
        graph.add_node(name, node)
    for before, after in ((START, "model"), ("model", "write"), ("write", "answer"), ("answer", END)):
        graph.add_edge(before, after)
    async with AsyncSqliteSaver.from_conn_string(str(desk.directory / "checkpoints.db")) as saver:
        compiled, turns, running = graph.compile(checkpointer=saver), desk.fresh(), set[asyncio.Task[None]]()
        while True:
            turn = await asyncio.to_thread(next, turns)
            running.add(asyncio.create_task(run_turn(compiled, desk, turn)))


if __name__ == "__main__":
    asyncio.run(main())
