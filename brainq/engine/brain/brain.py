"""A brain: the model, the prompt, the tools and the limits that an agent's turns share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, Unpack, overload

from brainq.contracts.brain import (
    AfterUntrusted,
    Approvals,
    Children,
    Context,
    Memory,
    PromptTemplate,
    Selection,
    ThinkLevel,
    ThinkLevelName,
)
from brainq.contracts.build import Pin
from brainq.contracts.callbacks import (
    AsyncPreToolHook,
    Callbacks,
    PostToolUse,
    PreToolHook,
    StreamChunk,
    TurnEnd,
    TurnInfo,
    UsageInfo,
)
from brainq.contracts.evaluation import DecisionStore, Judge
from brainq.contracts.ids import check_id
from brainq.contracts.model import TokenUsage
from brainq.contracts.model_options import ModelOptions
from brainq.contracts.turn import MAX_TAGS, Limits, OutputSchema, TurnRequest
from brainq.engine.brain.checks import (
    SystemPrompt,
    checked_after_untrusted,
    checked_callback,
    checked_cap,
    checked_level,
    checked_model,
    checked_options,
    checked_part,
    checked_pin,
    checked_prompt,
    checked_prompt_id,
    checked_store,
    index_by_name,
    read_callbacks,
)
from brainq.engine.brain.middleware import Hooks, Middleware, checked_middleware
from brainq.engine.gates.answer_schema import check_answer_schema
from brainq.engine.models.providers import Provider
from brainq.engine.tools.mcp.catalogue import DEFAULT_CATALOGUE
from brainq.engine.tools.mcp.server import McpServer
from brainq.engine.tools.mcp.tools import tools_of_servers
from brainq.engine.tools.tool import Tool, ToolOptions, ToolRegistry, check_options, make_tool
from brainq.errors import InvalidInput

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")
Hook = TypeVar("Hook", bound=PreToolHook | AsyncPreToolHook)
DEFAULT_CONTEXT = Context()
DEFAULT_SELECTION = Selection()
DEFAULT_APPROVALS = Approvals()
DEFAULT_CHILDREN = Children()


@dataclass(frozen=True, slots=True)
class StepInfo:
    """The facts about a step that is about to be made.

    step              counted from 1
    calls             the calls that the model has requested in this turn
    failed_calls      the calls of the step before that did not succeed
    usage, cost_usd   the turn's usage so far; calls of models without a known price are left out of the cost
    model             the model that the turn named; None for the brain's
    """

    turn: TurnInfo
    step: int
    calls: int
    failed_calls: int
    usage: TokenUsage
    cost_usd: float
    model: str | None = None


@dataclass(frozen=True, slots=True)
class StepChoice:
    """The model and options of one step. A field that is None leaves the choice to the turn and the brain.

    model     `provider:model`, or a Provider
    options   a ModelOptions, or a mapping of its fields; they override those of the turn
    """

    model: str | Provider | None = None
    options: ModelOptions | Mapping[str, Any] | None = None


ForStep = Callable[[StepInfo], StepChoice | None] | Callable[[StepInfo], Awaitable[StepChoice | None]]
"""A function that chooses another model or other options for a step, or returns None to keep the turn's. Its answer
must depend on the StepInfo alone, because it is called again for a step that is repeated."""


class Brain:
    """The settings that all turns of an agent share. Workers load a brain by name (`module:attr`).

    name              names the brain in SQL, metrics and logs
    model             `provider:model`, such as `openai:gpt-5`, or a Provider
    system_prompt     text, or a function of the TurnInfo, plain or async, that returns it
    tools             functions (which count as DESTRUCTIVE) or Tools; add more with `@brain.tool`
    callbacks         a Callbacks, a mapping, or an object with some of the `on_...` functions
    middleware        objects of Middleware, called around turns, steps, calls and finalizer steps, in this order
    options           the options of model calls: a ModelOptions, or a mapping of its fields
    for_step          a function of the StepInfo that returns a StepChoice with another model or other options for that
                      step, or None
    parallel_tools    False runs one call at a time, whatever its effect
    show_citations    True appends the sources to the answer
    redact_logs       True keeps message texts, arguments and results out of SQL
    memory            `Memory()` stores what is worth remembering and finds it again in later turns
    context           the context pack and the compaction of long conversations
    thinking          `off`, `low`, `medium` or `high`: how often the model reflects between two steps, and what the
                      system prompt says about thinking
    selection         chooses the tools that a turn's model sees if there are many; None shows all
    prompts           PromptTemplates that turns name by `prompt_id`
    judges            your own judges, which prompt templates may name
    auxiliary_model   the model that reflects, summarises, extracts and judges; by default the brain's model
    approvals         which effects need a person's approval in all tools, and how long a call waits for it
    after_untrusted   what calls with effects do once the turn has read the result of an untrusted tool. None runs them.
                      `ask` makes each wait for a person's approval; `ask_in_session` does so also after such a result
                      in an earlier turn
    children          how many turns in other sessions a turn may start, and how deep
    prompt_id         the template of `prompts` for turns that name none and bring no system prompt
    output_schema     the schema of answers if a submit names none: a JSON schema, or a pydantic model class. It does
                      not apply to child turns, reviews and compactions
    decisions         a `DecisionStore` that keeps the decision records instead of SQL
    final_steps       your own finalizer steps (`FinalStep`), run before the turn-end callback
    description       the purpose in a line or two, which others read, such as on the card of an A2A agent
    max_live_turns    how many of its turns may be live at once in the whole fleet, without parked ones. The others
                      wait, and delay no turn of another brain. None sets no limit
    mcp               the servers whose tools this brain has, as `brainq mcp pin` found them
    mcp_catalogue     the file in which they are pinned; a relative path starts at the working directory
    pin               `turn` ends a turn with the brain that began it, whatever is deployed meanwhile; `session` does so
                      for all turns of a session. None uses the deployed brain at each step

    Raises InvalidInput naming the field, ToolSchemaError naming the tool, or SetupError for a server that is not
    pinned.
    """

    def __init__(
        self,
        name: str,
        model: str | Provider,
        system_prompt: SystemPrompt = "",
        *,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        callbacks: Callbacks | Mapping[str, Any] | object | None = None,
        middleware: Iterable[Middleware] = (),
        limits: Limits | None = None,
        options: ModelOptions | Mapping[str, Any] | None = None,
        for_step: ForStep | None = None,
        parallel_tools: bool = True,
        show_citations: bool = False,
        redact_logs: bool = False,
        memory: Memory | None = None,
        context: Context = DEFAULT_CONTEXT,
        thinking: ThinkLevel | ThinkLevelName = ThinkLevel.OFF,
        selection: Selection | None = DEFAULT_SELECTION,
        prompts: Iterable[PromptTemplate] = (),
        judges: Iterable[Judge] = (),
        auxiliary_model: str | Provider | None = None,
        approvals: Approvals = DEFAULT_APPROVALS,
        after_untrusted: AfterUntrusted = None,
        children: Children = DEFAULT_CHILDREN,
        prompt_id: str | None = None,
        output_schema: OutputSchema | None = None,
        decisions: DecisionStore | None = None,
        final_steps: Iterable[Any] = (),
        description: str = "",
        max_live_turns: int | None = None,
        mcp: Iterable[McpServer] = (),
        mcp_catalogue: str | PathLike[str] = DEFAULT_CATALOGUE,
        pin: Pin | None = None,
    ) -> None:
        self.name = check_id("name", name)
        self.model = checked_model(model)
        self.system_prompt = checked_prompt(system_prompt)
        self.tools = ToolRegistry(tool if isinstance(tool, Tool) else make_tool(tool) for tool in tools)
        self.mcp = tuple(mcp)
        self.mcp_catalogue = Path(mcp_catalogue)
        for tool in tools_of_servers(self.mcp, self.mcp_catalogue):
            self.tools.add(tool)
        self.callbacks = read_callbacks(callbacks)
        self.middleware = checked_middleware(middleware)
        self.hooks = Hooks.of(self.middleware, self.callbacks)
        self.limits = Limits() if limits is None else limits
        self.options = checked_options(options)
        self.for_step = None if for_step is None else checked_callback("for_step", for_step)
        self.parallel_tools = parallel_tools
        self.show_citations = show_citations
        self.redact_logs = redact_logs
        self.memory = memory
        self.context = context
        self.thinking = checked_level(thinking)
        self.selection = selection
        self.prompts = index_by_name("prompts", prompts, lambda template: template.id)
        self.judges = index_by_name("judges", judges, lambda judge: check_id("judges", judge.name))
        self.auxiliary_model = None if auxiliary_model is None else checked_model(auxiliary_model)
        self.approvals = checked_part("approvals", approvals, Approvals)
        self.after_untrusted = checked_after_untrusted(after_untrusted)
        self.children = checked_part("children", children, Children)
        self.prompt_id = checked_prompt_id(prompt_id, self.prompts)
        self.output_schema = None if output_schema is None else check_answer_schema("output_schema", output_schema)
        self.decisions = None if decisions is None else checked_store(decisions)
        self.final_steps = tuple(final_steps)
        self.description = description
        self.max_live_turns = checked_cap("max_live_turns", max_live_turns)
        self.pin = checked_pin(pin)

    def complete(self, request: TurnRequest) -> TurnRequest:
        """Return the request with the brain's values in fields that it leaves open."""
        added: dict[str, Any] = {}
        if self.prompt_id and request.prompt_id is None and request.system_prompt is None:
            added["prompt_id"] = self.prompt_id
        template = self.prompts.get(request.prompt_id or added.get("prompt_id", ""))
        if template is not None:
            added["prompt_version"] = request.prompt_version or template.version
            tags = dict.fromkeys((*request.prompt_tags, *template.tags))
            added["prompt_tags"] = tuple(tags)[:MAX_TAGS]
        own = request.kind == "chat" and request.parent is None
        if self.output_schema is not None and request.output_schema is None and own:
            added["output_schema"] = self.output_schema
        return request.model_copy(update=added) if added else request

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...

    def tool(self, function: F | None = None, /, **options: Unpack[ToolOptions]) -> F | Callable[[F], F]:
        """Make a function a tool of this brain, and return it unchanged. A bare `@brain.tool` is DESTRUCTIVE.

        effect         what the function does to the world
        timeout_s      the longest time for one call, in seconds
        resources      templates such as `note:{path}`, `item:{order.sku}` or `cart:{session}`; calls that share a
                       resource never overlap
        idempotent     True: a call whose worker was lost may run again, with the same idempotency key
        lane           one more resource, such as `global`
        lane_scope     `cell` holds its lanes within each cell, if there are several
        isolation      `thread` is abandoned at its deadline; `process` is killed, with all it started
        deny_repeats   True denies the same call once it has succeeded and nothing was changed since, as for READ_ONLY
                       and idempotent tools
        parameters     a JSON schema (draft 2020-12, of an object) that replaces that of the signature; the function
                       gets the arguments unchanged, as keywords
        approval       True, a reason, or a function of the arguments, plain or async, that returns one of them: such a
                       call waits until a person approves it. The function gets a dict of JSON values, without those the
                       model left out; if it raises, the call needs an approval. False never needs one, whatever the
                       brain's `approvals` are. None leaves it to them
        untrusted      True: its results may contain text of third parties (`after_untrusted`). None means True for
                       NETWORK tools only

        Raises ToolSchemaError, or InvalidInput if the name is taken.
        """

        def add(function: F) -> F:
            check_options(getattr(function, "__name__", ""), options)
            self.tools.add(make_tool(function, **options))
            return function

        return add if function is None else add(function)

    def prompt_for(self, turn: TurnInfo) -> str:
        """Return the system prompt of this turn."""
        prompt = self.system_prompt
        return prompt if isinstance(prompt, str) else str(prompt(turn))

    def on_turn_start(self, callback: Callable[[TurnInfo], R]) -> Callable[[TurnInfo], R]:
        """Register a callback for the moment a turn becomes active."""
        return self._set("on_turn_start", callback)

    def on_usage(self, callback: Callable[[UsageInfo], R]) -> Callable[[UsageInfo], R]:
        """Register a callback for a turn's tokens, which the finalizer calls at least once."""
        return self._set("on_usage", callback)

    def on_pre_tool_use(self, callback: Hook) -> Hook:
        """Register a callback that is called before each call, and may refuse the call or rewrite its arguments."""
        return self._set("on_pre_tool_use", callback)

    def on_post_tool_use(self, callback: Callable[[PostToolUse], R]) -> Callable[[PostToolUse], R]:
        """Register a callback that is called after each call."""
        return self._set("on_post_tool_use", callback)

    def on_stream_chunk(self, callback: Callable[[StreamChunk], R]) -> Callable[[StreamChunk], R]:
        """Register a callback for the model's text as it arrives."""
        return self._set("on_stream_chunk", callback)

    def on_turn_end(self, callback: Callable[[TurnEnd], R]) -> Callable[[TurnEnd], R]:
        """Register a callback for the result, which the finalizer calls at least once."""
        return self._set("on_turn_end", callback)

    def _set(self, name: str, callback: F) -> F:
        if getattr(self.callbacks, name) is not None:
            raise InvalidInput(name, f"brain {self.name!r} already has one; call both from one function")
        self.callbacks = replace(self.callbacks, **{name: checked_callback(name, callback)})
        self.hooks = Hooks.of(self.middleware, self.callbacks)
        return callback
