"""What clients of chat wires make of a stream, as the npm packages do. The full tests use the real packages."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

Part = dict[str, Any]


class UiMessage:
    """The assistant's message as `ai` 7 builds it from chunks (`processUIMessageStream`)."""

    def __init__(self) -> None:
        self.id = ""
        self.metadata: dict[str, Any] = {}
        self.parts: list[Part] = []
        self.error = ""
        self.finish = ""
        self.transient: list[Part] = []
        self._open: dict[str, Part] = {}

    def take(self, chunks: Iterable[Part], *, replay: bool = False) -> UiMessage:
        """Build the message.

        `replay` means that the stream begins again, so that its first `start` removes everything before.
        """
        for chunk in deepcopy(list(chunks)):
            if self.error:
                break  # the client stops reading at an error
            if replay and chunk["type"] == "start":
                self.__init__()
                replay = False
            self._take(chunk)
        return self

    @property
    def text(self) -> str:
        return "\n".join(part["text"] for part in self.parts if part["type"] == "text")

    @property
    def reasoning(self) -> list[str]:
        return [part["text"] for part in self.parts if part["type"] == "reasoning"]

    def tool(self, call_id: str) -> Part:
        (found,) = [part for part in self.parts if part.get("toolCallId") == call_id]
        return found

    def _take(self, chunk: Part) -> None:
        match chunk["type"]:
            case "start":
                self.id = chunk.get("messageId", self.id)
                self.metadata |= chunk.get("messageMetadata", {})
            case "finish" | "message-metadata":
                self.finish = chunk.get("finishReason", self.finish)
                self.metadata |= chunk.get("messageMetadata", {})
            case "start-step":
                self.parts.append({"type": "step-start"})
            case "reset-step":
                del self.parts[self._step_at() :]
                self._open.clear()
            case "text-start" | "reasoning-start" as begun:
                kind = begun.removesuffix("-start")
                self._open[kind + chunk["id"]] = {"type": kind, "text": "", "state": "streaming"}
                self.parts.append(self._open[kind + chunk["id"]])
            case "text-delta" | "reasoning-delta" as added:
                self._open[added.removesuffix("-delta") + chunk["id"]]["text"] += chunk["delta"]
            case "text-end" | "reasoning-end" as ended:
                self._open.pop(ended.removesuffix("-end") + chunk["id"])["state"] = "done"
            case "tool-input-start" | "tool-input-available":
                self._tool_input(chunk)
            case "tool-approval-request":
                part = self.tool(chunk["toolCallId"])
                part |= {"state": "approval-requested", "approval": {"id": chunk["approvalId"]}}
            case "tool-approval-response":
                (part,) = [part for part in self.parts if part.get("approval", {}).get("id") == chunk["approvalId"]]
                part["state"] = "approval-responded"
                part["approval"] |= {"approved": chunk["approved"]}
            case "tool-output-available":
                self.tool(chunk["toolCallId"]).update(state="output-available", output=chunk["output"])
            case "tool-output-error":
                self.tool(chunk["toolCallId"]).update(state="output-error", errorText=chunk["errorText"])
            case "tool-output-denied":
                self.tool(chunk["toolCallId"])["state"] = "output-denied"
            case "error":
                self.error = chunk["errorText"]
            case "finish-step" | "abort":
                pass
            case "source-url" | "source-document":
                self.parts.append(chunk)
            case data if data.startswith("data-"):
                self._data(chunk)
            case unknown:
                raise AssertionError(f"no chunk of the stream is called {unknown}")

    def _step_at(self) -> int:
        return max((at for at, part in enumerate(self.parts) if part["type"] == "step-start"), default=-1) + 1

    def _tool_input(self, chunk: Part) -> None:
        state = "input-streaming" if chunk["type"] == "tool-input-start" else "input-available"
        new = {
            "type": f"tool-{chunk['toolName']}",
            "toolCallId": chunk["toolCallId"],
            "providerExecuted": chunk["providerExecuted"],
            "state": state,
            "input": chunk.get("input"),
        }
        for part in self.parts[self._step_at() :]:
            if part.get("toolCallId") == chunk["toolCallId"]:
                part |= new
                return
        self.parts.append(new)

    def _data(self, chunk: Part) -> None:
        if chunk.get("transient"):
            self.transient.append(chunk)
            return
        for part in self.parts:
            if (part["type"], part.get("id")) == (chunk["type"], chunk["id"]):
                part["data"] = chunk["data"]
                return
        self.parts.append(chunk)


class AgUiClient:
    """The state of `@ag-ui/client` 1.0, and the events that it refuses (`verifyEvents`, `defaultApplyEvents`)."""

    def __init__(self, messages: Iterable[Part]) -> None:
        self.messages: list[Part] = deepcopy(list(messages))
        self.outcome: Part | None = None
        self.error: Part | None = None
        self.result: Any = None
        self.custom: list[Part] = []

    def run(self, events: Iterable[Part]) -> AgUiClient:
        """Apply the events of one run."""
        self.outcome, self.error = None, None
        steps: set[str] = set()
        texts: set[str] = set()
        calls: set[str] = set()
        spans: set[str] = set()
        for at, event in enumerate(deepcopy(list(events))):
            assert (at == 0) == (event["type"] == "RUN_STARTED") or event["type"] == "RUN_ERROR"
            is_over = self.outcome or self.error
            assert not is_over, "an event came behind the end"
            match event["type"]:
                case "STEP_STARTED":
                    assert event["stepName"] not in steps
                    steps.add(event["stepName"])
                case "STEP_FINISHED":
                    steps.remove(event["stepName"])
                case "REASONING_START" | "REASONING_MESSAGE_START" as kind:
                    assert kind + event["messageId"] not in spans
                    spans.add(kind + event["messageId"])
                case "REASONING_MESSAGE_CONTENT":
                    assert f"REASONING_MESSAGE_START{event['messageId']}" in spans
                case "REASONING_END" | "REASONING_MESSAGE_END" as kind:
                    spans.remove(kind.replace("END", "START") + event["messageId"])
                case "TEXT_MESSAGE_START":
                    assert event["messageId"] not in texts
                    texts.add(event["messageId"])
                case "TEXT_MESSAGE_CONTENT":
                    assert event["messageId"] in texts
                case "TEXT_MESSAGE_END":
                    texts.remove(event["messageId"])
                case "TOOL_CALL_START":
                    assert event["toolCallId"] not in calls
                    calls.add(event["toolCallId"])
                case "TOOL_CALL_END":
                    calls.remove(event["toolCallId"])
                case "RUN_FINISHED":
                    assert not steps | texts | calls | spans
                case _:
                    pass
            self._take(event)
        return self

    @property
    def text(self) -> str:
        said = [message.get("content") for message in self.messages if message["role"] == "assistant"]
        return "\n".join(text for text in said if text)

    @property
    def reasoning(self) -> list[str]:
        return [message["content"] for message in self.messages if message["role"] == "reasoning"]

    def _take(self, event: Part) -> None:
        match event["type"]:
            case "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START":
                if not self._found(event["messageId"]):
                    new = {"id": event["messageId"], "role": event["role"], "content": ""}
                    self.messages.append(new)
            case "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT":
                message = self._found(event["messageId"])
                assert message is not None
                message["content"] = message.get("content", "") + event["delta"]
            case "TOOL_CALL_START":
                self._tool_call(event)
            case "TOOL_CALL_ARGS":
                self._call(event["toolCallId"])["function"]["arguments"] += event["delta"]
            case "TOOL_CALL_RESULT":
                self._result(event)
            case "MESSAGES_SNAPSHOT":
                new = {message["id"]: message for message in event["messages"]}
                # The client's own reasoning stays where the snapshot has none at all.
                stays = {"reasoning"} - {message["role"] for message in event["messages"]}
                kept = [
                    new.pop(message["id"], message)
                    for message in self.messages
                    if message["id"] in new or message["role"] in stays
                ]
                self.messages = [*kept, *new.values()]
            case "RUN_FINISHED":
                self.outcome, self.result = event["outcome"], event.get("result")
            case "RUN_ERROR":
                self.error = event
            case "CUSTOM":
                self.custom.append(event)
            case _:
                pass

    def _found(self, message_id: str) -> Part | None:
        return next((message for message in self.messages if message["id"] == message_id), None)

    def _call(self, call_id: str) -> Part:
        (found,) = [call for message in self.messages for call in message.get("toolCalls", ()) if call["id"] == call_id]
        return found

    def _tool_call(self, event: Part) -> None:
        if any(call["id"] == event["toolCallId"] for message in self.messages for call in message.get("toolCalls", ())):
            return
        message = self._found(event["parentMessageId"])
        if message is None:
            message = Part({"id": event["parentMessageId"], "role": "assistant"})
            self.messages.append(message)
        made = {"name": event["toolCallName"], "arguments": ""}
        message.setdefault("toolCalls", []).append({"id": event["toolCallId"], "type": "function", "function": made})

    def _result(self, event: Part) -> None:
        at = next(
            at
            for at, message in enumerate(self.messages)
            if any(call["id"] == event["toolCallId"] for call in message.get("toolCalls", ()))
        )
        at += 1
        while at < len(self.messages) and self.messages[at]["role"] == "tool":
            at += 1
        made = {
            "id": event["messageId"],
            "role": "tool",
            "content": event["content"],
            "toolCallId": event["toolCallId"],
        }
        self.messages.insert(at, made)
