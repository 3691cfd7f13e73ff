"""A brain: the model, the prompt, the tools and the limits that an agent's turns share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, Unpack, overload

from brainq.brain.checks import (
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
from brainq.brain.middleware import Hooks, Middleware, checked_middleware
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
from brainq.contracts.turn import MAX_TAGS, Limits, TurnRequest
from brainq.errors import InvalidInput
from brainq.gates.answer_schema import OutputSchema, check_answer_schema
from brainq.models.providers import Provider
from brainq.tools.mcp.catalogue import DEFAULT_CATALOGUE
from brainq.tools.mcp.server import McpServer
from brainq.tools.mcp.tools import tools_of_servers
from brainq.tools.tool import Tool, ToolOptions, ToolRegistry, check_options, make_tool

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")
Hook = TypeVar("Hook", bound=PreToolHook | AsyncPreToolHook)
DEFAULT_CONTEXT = Context()
DEFAULT_SELECTION = Selection()
DEFAULT_APPROVALS = Approvals()
DEFAULT_CHILDREN = Children()


@dataclass(frozen=True, slots=True)
class StepInfo:
    """A step about to be made, as far as its turn is known.

    step           counted from 1
    calls          those that the model has asked for in this turn
    failed_calls   those of the step before that did not succeed
    usage, cost_usd   the turn's so far; money of models without a known price is left out
    model          what the turn itself named; None: the brain's
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
    """How one step is asked. What is None is as the turn and the brain say.

    model     `provider:model`, or a Provider
    options   a ModelOptions, or a mapping of its fields; over those of the turn
    """

    model: str | Provider | None = None
    options: ModelOptions | Mapping[str, Any] | None = None


ForStep = Callable[[StepInfo], StepChoice | None] | Callable[[StepInfo], Awaitable[StepChoice | None]]
"""`Brain(for_step=...)`: another model, or another way to ask, for chosen steps. None: as the turn says. It must depend
on the StepInfo alone: it is called again for a step that is made again."""


class Brain:
    """What the workers load by name (`module:attr`) and every turn of it shares.

    name             names the brain in SQL, metrics and logs
    model            `provider:model`, such as `openai:gpt-5`, or a Provider
    system_prompt    text, or a function of the TurnInfo, plain or async, that returns it
    tools            functions (they count as DESTRUCTIVE) or Tools; more come with `@brain.tool`
    callbacks        a Callbacks, a mapping, or an object with some of the `on_...` functions
    middleware       objects of Middleware, called around turns, steps, calls and finalizer steps, in this order
    options          how the model is asked: a ModelOptions, or a mapping of its fields
    for_step         a function of the StepInfo that returns a StepChoice: another model or other options for that
                     step; or None: as the turn says
    parallel_tools   False: one call at a time, whatever the effects
    show_citations   True: sources are appended to the answer
    redact_logs      True: SQL keeps no message texts, arguments and results
    memory           `Memory()`: what is worth remembering is kept over turns, and found again
    context          the context pack and the compaction of long conversations
    thinking         `off`, `low`, `medium` or `high`: how often the model reflects on the turn between two steps,
                     and what the system prompt says about thinking
    selection        chooses the tools a turn's model sees where there are many; None: it sees all
    prompts          PromptTemplates that turns name by `prompt_id`
    judges           judges of your own that prompt templates may name
    auxiliary_model  what reflects, summarises, extracts and judges; by default the brain's model
    approvals        which effects need a person's approval in all tools, and how long a call waits for one
    after_untrusted  what changes do once the turn has read a result of an untrusted tool. None: they run. `ask`: each
                     waits for a person's approval; `ask_in_session`: also after such a result of an earlier turn
    children         how many turns in other sessions a turn may start, and how deep
    prompt_id        the template of `prompts` for turns that name none and bring no system prompt of their own
    output_schema    what answers have to fit where a submit names none: a JSON schema, or a pydantic model class.
                     Not for child turns, reviews and compactions
    decisions        a `DecisionStore` that keeps the decision records in place of SQL
    final_steps      finalizer steps of your own (`FinalStep`), run before the turn-end callback
    description      what it is for, in a line or two: others read this, such as on the card of an A2A agent
    max_live_turns   how many of its turns may be live at once in the whole fleet, parked ones aside; the others wait,
                     and keep no turn of another brain waiting. None: as many as there is room for
    mcp              servers whose tools this brain has, as `brainq mcp pin` found them
    mcp_catalogue    the file in which they are pinned; a relative path counts from the working directory
    pin              `turn`: a turn ends with the brain that began it, whatever is deployed meanwhile; `session`: so do
                     all turns of its session. None: each step is the brain's that is there

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
        """The request with what the brain says where it says nothing."""
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
        """Make a function a tool of this brain, and return it unchanged; bare `@brain.tool` is DESTRUCTIVE.

        effect       what the function does to the world
        timeout_s    the longest one call may take, seconds
        resources    templates such as `note:{path}`, `item:{order.sku}` or `cart:{session}`: calls that share one never
                     overlap
        idempotent   True: a call whose worker was lost may run again, with the same idempotency key
        lane         one more resource, such as `global`
        lane_scope   `cell`: with several cells it is enough that its lanes hold within each of them
        isolation    `thread`: abandoned at its deadline; `process`: killed, with all it started
        deny_repeats   True: the same call again, with no change made since it brought its result, is denied, as it is
                     for READ_ONLY and idempotent tools
        parameters   a JSON schema (draft 2020-12, of an object) to use in place of the signature's; the function takes
                     the arguments as they are, as keywords
        approval     True, a reason, or a function of the arguments, plain or async, that returns one of them: such a
                     call waits until a person approves it. The function gets a dict of JSON values, without those the
                     model left out; if it raises, the call needs an approval. False: never, whatever the brain's
                     `approvals` say. None: only they decide
        untrusted    True: its results may hold text of third parties (`after_untrusted`). None: so it is for NETWORK
                     tools

        Raises ToolSchemaError, or InvalidInput if the name is taken.
        """

        def add(function: F) -> F:
            check_options(getattr(function, "__name__", ""), options)
            self.tools.add(make_tool(function, **options))
            return function

        return add if function is None else add(function)

    def prompt_for(self, turn: TurnInfo) -> str:
        """The system prompt of this turn."""
        prompt = self.system_prompt
        return prompt if isinstance(prompt, str) else str(prompt(turn))

    def on_turn_start(self, callback: Callable[[TurnInfo], R]) -> Callable[[TurnInfo], R]:
        """Decorator: called when a turn becomes active."""
        return self._set("on_turn_start", callback)

    def on_usage(self, callback: Callable[[UsageInfo], R]) -> Callable[[UsageInfo], R]:
        """Decorator: called by the finalizer with a turn's tokens, at least once."""
        return self._set("on_usage", callback)

    def on_pre_tool_use(self, callback: Hook) -> Hook:
        """Decorator: called before each call; may refuse it or rewrite its arguments."""
        return self._set("on_pre_tool_use", callback)

    def on_post_tool_use(self, callback: Callable[[PostToolUse], R]) -> Callable[[PostToolUse], R]:
        """Decorator: called after each call."""
        return self._set("on_post_tool_use", callback)

    def on_stream_chunk(self, callback: Callable[[StreamChunk], R]) -> Callable[[StreamChunk], R]:
        """Decorator: called with the model's text as it comes."""
        return self._set("on_stream_chunk", callback)

    def on_turn_end(self, callback: Callable[[TurnEnd], R]) -> Callable[[TurnEnd], R]:
        """Decorator: called by the finalizer with the result, at least once."""
        return self._set("on_turn_end", callback)

    def _set(self, name: str, callback: F) -> F:
        if getattr(self.callbacks, name) is not None:
            raise InvalidInput(name, f"brain {self.name!r} already has one; call both from one function")
        self.callbacks = replace(self.callbacks, **{name: checked_callback(name, callback)})
        self.hooks = Hooks.of(self.middleware, self.callbacks)
        return callback
