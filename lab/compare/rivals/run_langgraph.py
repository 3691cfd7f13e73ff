# pyright: basic, reportMissingImports=false
"""LangGraph: a graph with a durable SQLite checkpointer, in one process.

`durability="sync"` writes each checkpoint before the next node runs. Reads are sent side by side (`Send`), the write
follows; each finalizer step is a node, so that a resumed turn goes on with the first that was not done.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import aiosqlite
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send

from lab.compare import rows, turn
from lab.compare.serving import Ended, options, serve_async


class State(TypedDict):
    turn_id: str
    messages: Annotated[list[AnyMessage], add_messages]
    final_steps: int
    result_at: float


async def model(state: State) -> dict[str, Any]:
    await asyncio.sleep(turn.MODEL_S)
    if any(isinstance(message, ToolMessage) for message in state["messages"]):
        return {"messages": [AIMessage(turn.ANSWER)]}
    path, text = turn.WRITE
    calls = [ToolCall(name="read_note", args={"path": read}, id=f"read-{read}") for read in turn.READS]
    calls.append(ToolCall(name="write_note", args={"path": path, "text": text}, id="write"))
    return {"messages": [AIMessage("", tool_calls=calls)]}


def after_model(state: State) -> list[Send] | str:
    last = state["messages"][-1]
    assert isinstance(last, AIMessage)
    return [Send("read", call) for call in last.tool_calls if call["name"] == "read_note"] or "citations"


async def read(call: ToolCall) -> dict[str, Any]:
    await asyncio.sleep(turn.READ_S)
    return {"messages": [ToolMessage(turn.note(call["args"]["path"]), tool_call_id=call["id"])]}


async def write(state: State) -> dict[str, Any]:
    asked = next(message for message in state["messages"] if isinstance(message, AIMessage))
    call = asked.tool_calls[-1]
    await asyncio.sleep(turn.WRITE_S)
    return {"messages": [ToolMessage(turn.wrote(**call["args"]), tool_call_id=call["id"])]}


def final_step(name: str, database: aiosqlite.Connection) -> Any:
    async def step(state: State) -> dict[str, Any]:
        done: dict[str, Any] = {"final_steps": state.get("final_steps", 0) + 1}
        if name == "log":
            await database.execute(rows.LOG, (state["turn_id"], state["messages"][-1].text))
        elif name == "decision":
            calls = sum(isinstance(message, ToolMessage) for message in state["messages"])
            await database.execute(rows.DECISION, (state["turn_id"], calls))
        elif name == "result":
            done["result_at"] = time.time()
        return done

    return step


def graph_of(database: aiosqlite.Connection) -> StateGraph[State]:
    graph = StateGraph(State)
    graph.add_node("model", model)
    graph.add_node("read", read)
    graph.add_node("write", write)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", after_model, ["read", "citations"])
    graph.add_edge("read", "write")
    graph.add_edge("write", "model")
    for name in turn.FINAL_STEPS:
        graph.add_node(name, final_step(name, database))
    for before, after in zip(turn.FINAL_STEPS, [*turn.FINAL_STEPS[1:], END], strict=True):
        graph.add_edge(before, after)
    return graph


async def main() -> None:
    given = options()
    path = given.directory / "rows.db"
    rows.connect(path).close()
    async with (
        aiosqlite.connect(given.directory / "checkpoints.db") as checkpoints,
        aiosqlite.connect(path, isolation_level=None, timeout=30) as database,
    ):
        # As brainq's own SQLite: what is committed outlives the process; the last of it not a power cut. The
        # checkpointer sets WAL itself.
        for connection in (checkpoints, database):
            await connection.execute("PRAGMA synchronous=NORMAL")
        graph = graph_of(database).compile(checkpointer=AsyncSqliteSaver(checkpoints))

        async def one() -> Ended:
            turn_id, submitted_at = uuid4().hex, time.time()
            question = {"turn_id": turn_id, "messages": [HumanMessage(turn.QUESTION)]}
            state = await graph.ainvoke(question, {"configurable": {"thread_id": turn_id}}, durability="sync")
            calls = sum(isinstance(message, ToolMessage) for message in state["messages"])
            latency_s = state["result_at"] - submitted_at
            return Ended(latency_s, state["messages"][-1].text, calls, state["final_steps"])

        async def run(count: int) -> list[Ended]:
            return list(await asyncio.gather(*(one() for _ in range(count))))

        await serve_async(run)


if __name__ == "__main__":
    asyncio.run(main())
