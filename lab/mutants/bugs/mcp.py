"""Bugs of MCP servers' tools, and of what is asked after untrusted results."""

from __future__ import annotations

from lab.mutants.bug import Bug

TASKS = (
    "tests/integration/mcp/test_tasks.py::test_a_server_that_was_started_again_is_not_asked_for_its_forerunner_s_task",
)
UNTRUSTED = ("tests/unit/engine/turn/test_untrusted_results.py",)
CATALOGUE = ("tests/unit/engine/tools/mcp/test_catalogue.py",)
INJECTED = (
    "tests/integration/engine/test_prompt_injection.py::test_with_the_policy_no_change_of_an_attack_is_made_and_the_task_is_done",
)
SESSIONS = "tests/integration/mcp/test_lost_sessions.py"
ANSWERS = ("tests/unit/engine/tools/mcp/test_http_answers.py",)
MALFORMED = (
    "tests/integration/mcp/test_calls.py::test_a_malformed_tool_takes_no_other_away_and_says_what_is_wrong_with_it",
)
NAMES = ("tests/unit/engine/tools/mcp/test_names.py",)
SCHEMAS = "brainq/adapters/models/tool_schema.py"
SENT = ("tests/unit/engine/models/test_tool_schema.py::test_what_a_service_would_refuse_is_rewritten",)
OAUTH = ("tests/integration/mcp/test_oauth.py",)
POLICY = "brainq/engine/turn/call_plan.py"

BUGS = (
    Bug(
        "a restarted MCP server is asked for its forerunner's task",
        "brainq/engine/tools/mcp/calls.py",
        "(connection is None or connection.name != task.held_by)",
        "connection is None",
        TASKS,
    ),
    Bug(
        "a failed call of an untrusted tool does not count",
        POLICY,
        'if message.role == "tool"',
        'if message.role == "tool" and not message.is_error',
        UNTRUSTED,
    ),
    Bug("what a turn began with does not count", POLICY, "*view.opening, ", "", UNTRUSTED),
    Bug("what was compacted does not count", POLICY, "view.compacted or ", "", UNTRUSTED),
    Bug(
        "earlier turns do not count in the session",
        POLICY,
        "view.history.messages if is_session else view.own_messages",
        "view.own_messages",
        UNTRUSTED,
    ),
    Bug(
        "earlier turns count in the turn",
        POLICY,
        "view.history.messages if is_session else view.own_messages",
        "view.history.messages",
        UNTRUSTED,
    ),
    Bug(
        "the policy asks for nothing",
        "brainq/engine/turn/call_plan.py",
        "() if brain.after_untrusted is None else untrusted_sources(brain, view)",
        "()",
        INJECTED,
    ),
    Bug(
        "reads ask after untrusted results, too",
        "brainq/engine/turn/call_plan.py",
        "untrusted and not tool.spec.effect.is_read",
        "untrusted",
        UNTRUSTED,
    ),
    Bug(
        "tools of MCP servers are trusted where nothing is said",
        "brainq/engine/tools/mcp/tools.py",
        'return not annotations or annotations.get("openWorldHint") is not False',
        'return bool(annotations) and annotations.get("openWorldHint") is True',
        CATALOGUE,
    ),
    Bug(
        "a session that is gone for one call ends another in flight",
        "brainq/engine/tools/mcp/connection.py",
        "if self._is_retired and self.asking == 0:",
        "if self._is_retired:",
        (f"{SESSIONS}::test_a_session_that_is_gone_for_one_call_is_not_ended_under_another",),
    ),
    Bug(
        "the body of a 404 decides what it means",
        "brainq/engine/tools/mcp/http_answers.py",
        "if request.has_session and (status in _GONE or",
        "if request.has_session and ((status in _GONE and session_lost) or",
        ANSWERS,
    ),
    Bug(
        "a change is not repeated in a new session",
        "brainq/engine/tools/mcp/results.py",
        """    ends_session = True
    repeats = "any"
""",
        """    ends_session = True
    repeats = "read"
""",
        (f"{SESSIONS}::test_a_change_is_made_once_in_a_new_session_whatever_the_body_says",),
    ),
    Bug(
        "a 202 to a call is read by the SDK, which calls it invalid",
        "brainq/engine/tools/mcp/http_answers.py",
        "200 <= status < 300 and status != HTTPStatus.ACCEPTED",
        "200 <= status < 300",
        ANSWERS,
    ),
    Bug(
        "a 503 says that nothing ran",
        "brainq/engine/tools/mcp/http_answers.py",
        "if 400 <= status < 500 and status not in _MAY_HAVE_RUN:",
        "if 400 <= status < 504 and status not in _MAY_HAVE_RUN:",
        ANSWERS,
    ),
    Bug(
        "calls of a server that forgets every session repeat without end",
        "brainq/engine/tools/mcp/calls.py",
        "return await self._sent(arguments, meta, on_progress, repeats + 1)",
        "return await self._sent(arguments, meta, on_progress, repeats)",
        (f"{SESSIONS}::test_a_server_that_forgets_every_session_is_not_asked_for_ever",),
    ),
    Bug(
        "a malformed tool takes its list away",
        "brainq/engine/tools/mcp/sdk.py",
        '        return ListedTool(entry, str(first_problem(problems, entry, whole="the tool")))',
        "        raise MCPError(code=INTERNAL_ERROR, message=str(problems)) from error",
        MALFORMED,
    ),
    Bug(
        "a cursor that comes again is followed",
        "brainq/engine/tools/mcp/connection.py",
        "if cursor in seen or len(listed) > MAX_TOOLS:",
        "if cursor is None or len(listed) > MAX_TOOLS * 100:",
        MALFORMED,
    ),
    Bug(
        "why a pinned tool cannot be used is not said",
        "brainq/engine/tools/mcp/catalogue.py",
        "malformed={name: found.left_out[name] for name in gone if name in found.left_out},",
        "malformed={},",
        CATALOGUE,
    ),
    Bug(
        "the order of a list decides the names of tools",
        "brainq/engine/tools/mcp/names.py",
        "owners = originals if len(originals) == 1 else [name for name in originals if _is_clean(server, name)]",
        "owners = [next(tool.name for tool in tools if tool.name in originals)]",
        NAMES,
    ),
    Bug(
        "a tool that was pinned loses its name to a new one",
        "brainq/engine/tools/mcp/names.py",
        'model_copy(update={"model_name": renamed.get(tool.name)})',
        "model_copy()",
        NAMES,
    ),
    Bug(
        "alternatives at the top go to the model",
        SCHEMAS,
        'if alternatives := schema.pop("anyOf", None):',
        'if alternatives := schema.get("any", None):',
        SENT,
    ),
    Bug(
        "an object without properties goes to the model",
        SCHEMAS,
        'schema = {"properties": {}, **schema, "type": "object"}',
        'schema = {**schema, "type": "object"}',
        SENT,
    ),
    Bug(
        "what one alternative requires is required of all",
        SCHEMAS,
        "sorted(set.intersection(*wanted))",
        "sorted(set.union(*wanted))",
        SENT,
    ),
    Bug(
        "a group of exceptions hides its leaves",
        "brainq/runtime/text/failures.py",
        "            waiting.extend(reversed(group.exceptions))",
        "            yield group",
        ("tests/unit/runtime/text/test_failures.py",),
    ),
    Bug(
        "a doubt in a group is a failure",
        "brainq/engine/calls/function_run.py",
        "return doubts[0] if doubts else only_leaf(error)",
        "return only_leaf(error)",
        ("tests/unit/engine/calls/test_results.py",),
    ),
    Bug(
        "each request that was refused fetches a token of its own",
        "brainq/engine/tools/mcp/http_transport.py",
        "(not is_answered and self._token() in (None, token))",
        "not is_answered",
        OAUTH,
    ),
)
