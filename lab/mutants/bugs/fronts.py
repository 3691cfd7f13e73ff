"""Bugs of the fronts: who may do what over HTTP, MCP, A2A, AG-UI and the AI SDK."""

from __future__ import annotations

from lab.mutants.bug import Bug

VERBS = (
    "tests/integration/gateway/test_verb_table.py::test_without_one_of_its_verbs_nothing_is_done_and_with_them_alone_it_is",
)
DECIDED = ("tests/integration/gateway/test_verb_table.py::test_of_a_decision_that_comes_back_nothing_is_believed",)
CONFIGURED = (
    "tests/integration/gateway/test_verb_table.py::test_what_clients_send_by_themselves_counts_of_who_may_configure",
)
MCP_CALLS = ("tests/contrib/mcp_server/test_mcp_parts.py",)
AG_UI = ("tests/contrib/ag_ui/test_ag_ui_bodies.py",)
A2A = ("tests/contrib/a2a/test_a2a_fold.py",)
STREAM = ("tests/unit/gateway/test_event_stream.py",)
TOKENS = ("tests/integration/adapters/sql/test_tokens.py",)
EARLIER = "tests/integration/gateway/openai/test_earlier_responses.py"
SCHEMAS = ("tests/unit/engine/gates/test_schema_validator.py",)
DOOR = "tests/integration/gateway/test_door.py"

PAGE = ("tests/unit/gateway/test_page_assets.py",)
PAGE_WORDS = ("tests/unit/gateway/test_page_words.py",)

BUGS = (
    Bug(
        "a gateway without threads calls that a bug of brainq",
        "brainq/gateway/edge/access.py",
        "    if is_shortage(failure):",
        "    if False:",
        (f"{DOOR}::test_a_gateway_without_threads_asks_to_come_again",),
    ),
    Bug(
        "a submit that a gateway was too short for names no key to come again with",
        "brainq/gateway/rest/bodies.py",
        "if not (isinstance(error, Unreachable) or is_shortage(error)):",
        "if not isinstance(error, Unreachable):",
        (f"{DOOR}::test_a_gateway_without_threads_asks_to_come_again",),
    ),
    Bug(
        "an A2A client decides without the verb",
        "brainq/contrib/a2a/requests.py",
        "Verb.DECIDE if isinstance(answer, ApprovalDecision)",
        "Verb.READ if isinstance(answer, ApprovalDecision)",
        VERBS,
    ),
    Bug(
        "results of calls come over the OpenAI wire without steer",
        "brainq/gateway/wires/openai/messages.py",
        "    request.require_verb(Verb.STEER)\n",
        "",
        VERBS,
    ),
    Bug(
        "options of an OpenAI request are not looked at",
        "brainq/gateway/wires/openai/messages.py",
        'for name in options if name not in ("limits", "options")',
        "for name in ()",
        VERBS,
    ),
    Bug(
        "whoever speaks as OpenAI's clients do widens the limits",
        "brainq/gateway/wires/openai/parameters.py",
        "brain.limits, Verb.CONFIGURE in caller.verbs",
        "brain.limits, True",
        CONFIGURED,
    ),
    Bug(
        "a page of a response's input items begins with the one before it",
        "brainq/gateway/wires/openai/response_items.py",
        "known.index(after) + 1",
        "known.index(after)",
        (f"{EARLIER}::test_the_items_come_page_by_page",),
    ),
    Bug(
        "a question to an old response goes behind the newest turn",
        "brainq/gateway/wires/openai/earlier_responses.py",
        "return newest == previous.turn_id",
        "return True",
        (f"{EARLIER}::test_a_question_to_an_older_response_begins_a_branch",),
    ),
    Bug(
        "a retry of a question that its session went on by begins a branch",
        "brainq/gateway/wires/openai/earlier_responses.py",
        "return found.session_id == previous.session_id and",
        "return False and",
        (f"{EARLIER}::test_the_same_request_again_is_the_same_turn_on_either_way",),
    ),
    Bug(
        "a deleted response is given where its request comes again",
        "brainq/gateway/wires/openai/responses.py",
        "    if not handle.created:\n",
        "    if False:\n",
        (f"{EARLIER}::test_a_deleted_response_is_not_found",),
    ),
    Bug(
        "the turn of a deleted response goes on",
        "brainq/gateway/wires/openai/responses.py",
        '    await handle.cancel("its response was deleted over HTTP")\n',
        "",
        (f"{EARLIER}::test_a_turn_that_lives_is_cancelled",),
    ),
    Bug(
        "an item of a deleted response is named in another request",
        "brainq/gateway/wires/openai/response_items.py",
        "if await handle.is_response_deleted():",
        "if not handle.turn_id:",
        (f"{EARLIER}::test_a_deleted_response_is_not_found",),
    ),
    Bug(
        "chats are decided without the verb",
        "brainq/gateway/wires/chat/requests.py",
        "Verb.DECIDE if isinstance(one, ApprovalDecision)",
        "Verb.READ if isinstance(one, ApprovalDecision)",
        VERBS,
    ),
    Bug(
        "MCP has all tools for everybody",
        "brainq/contrib/mcp_server/server.py",
        "if tool is not None and request.caller.verbs >= tool.needs:",
        "if tool is not None:",
        ("tests/contrib/mcp_server/test_mcp.py::test_what_is_listed_is_what_the_caller_may",),
    ),
    Bug(
        "an MCP client cancels a call without steer",
        "brainq/contrib/mcp_server/requests.py",
        "may(caller, Verb.STEER, handle.session_id)",
        "may(caller, Verb.READ, handle.session_id)",
        MCP_CALLS,
    ),
    Bug(
        "another tenant's call is decided by way of a turn of one's own",
        "brainq/contrib/mcp_server/following.py",
        "if split_call_id(approval_id)[0] != found.turn_id:",
        "if not approval_id:",
        (*MCP_CALLS, *DECIDED),
    ),
    Bug(
        "arguments that were never shown are approved",
        "brainq/contrib/mcp_server/following.py",
        "args_hash=args_hash)",
        "args_hash=None)",
        DECIDED,
    ),
    Bug(
        "two tenants' idempotency keys meet",
        "brainq/contrib/mcp_server/requests.py",
        'f"{caller.counted_as} {text}"',
        "text",
        MCP_CALLS,
    ),
    Bug(
        "AG-UI's context reaches the model without configure",
        "brainq/contrib/ag_ui/routes.py",
        "or None if configures else None",
        "or None",
        AG_UI,
    ),
    Bug(
        "old results are answers to a later question",
        "brainq/contrib/ag_ui/routes.py",
        'f"{message.tool_call_id}-result":\n            break',
        'f"{message.tool_call_id}-result":\n            continue',
        AG_UI,
    ),
    Bug(
        "a stream goes on while nobody can say whether it may",
        "brainq/gateway/rest/event_stream.py",
        'log.warning("a stream is cut off", failure=failure)\n            return False',
        'log.warning("a stream is cut off", failure=failure)\n            return True',
        STREAM,
    ),
    Bug(
        "a token is known on where it was revoked",
        "brainq/app/access/tokens.py",
        "with self._lock:\n            self._checked.pop(token_id, None)",
        "with self._lock:\n            self._checked.pop(token, None)",
        TOKENS,
    ),
    Bug(
        "a subscription ends while a second approval is open",
        "brainq/contrib/a2a/routes.py",
        "after.is_over or (after.is_interrupted and not before.is_interrupted)",
        "after.is_over or after.is_interrupted",
        A2A,
    ),
    Bug(
        "a failed task says nothing",
        "brainq/contrib/a2a/tasks.py",
        "reason = result.error or result.text",
        "reason = result.text",
        A2A,
    ),
    Bug(
        "the model goes on for a page that was closed",
        "brainq/gateway/wires/chat/requests.py",
        ', "turn_id": attended_turn_id()}',
        "}",
        ("tests/contrib/test_chat_wires.py::test_calls_that_a_page_never_answers_end_their_turn",),
    ),
    Bug(
        "half of a parked turn's timeline is the future",
        "brainq/gateway/page/assets/live/scale.js",
        "isOver || isParked ?",
        "isOver ?",
        PAGE_WORDS,
    ),
    Bug(
        "what a model without a price has cost so far is shown as nothing",
        "brainq/gateway/page/assets/live/figures.js",
        "budget?.cost_known === false && budget.tokens_used ? null : ",
        "",
        PAGE_WORDS,
    ),
    Bug(
        "a turn's page does not show a write that may have happened",
        "brainq/gateway/page/assets/parts/unknown_writes.js",
        'call.status === "unknown"',
        'call.status === "failed"',
        PAGE_WORDS,
    ),
    Bug(
        "a turn's page does not say what an approval's tool does",
        "brainq/gateway/page/assets/views/turn.js",
        "  askForBrains(update);",
        "  ",
        PAGE,
    ),
    Bug(
        "a chat's message waits behind an open approval",
        "brainq/gateway/wires/chat/requests.py",
        'if any(approval.state == "pending" for approval in approvals):',
        'if any(approval.state == "approved" for approval in approvals):',
        ("tests/contrib/test_chat_wires.py::test_a_message_beside_an_open_approval_is_refused_and_the_chat_goes_on",),
    ),
    Bug(
        "references that choose between one another multiply",
        "brainq/engine/gates/schema_validator.py",
        "isinstance(instance, dict | list) or known.times",
        "known.times",
        SCHEMAS,
    ),
    Bug(
        "a long check keeps the process to itself",
        "brainq/engine/gates/schema_validator.py",
        "            time.sleep(SLICE_S)\n",
        "",
        SCHEMAS,
    ),
    Bug(
        "a page may send headers that were thought of",
        "brainq/gateway/app.py",
        'allow_headers=["*"]',
        'allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Prefer"]',
        (f"{DOOR}::test_every_header_of_a_client_passes_a_preflight",),
    ),
    Bug(
        "HEAD follows a stream to its end",
        "brainq/gateway/app.py",
        "                begun.set()\n",
        "",
        (f"{DOOR}::test_head_is_get_without_its_body",),
    ),
    Bug(
        "of each call that ended all calls are read",
        "brainq/gateway/wires/chat/stream.py",
        "self._handle.calls(last - first + 1, self._before(step, first))",
        "self._handle.calls()",
        ("tests/unit/gateway/test_call_details.py",),
    ),
    Bug(
        "the stand-in model does not hear what is sent into a live turn",
        "brainq/engine/models/offline.py",
        '    if "input" not in message.extra:\n',
        "    if message.extra:\n",
        ("tests/unit/engine/models/test_scripted.py",),
    ),
)
