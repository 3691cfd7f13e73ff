"""Bugs of MCP servers' tools, and of what is asked after untrusted results."""

from __future__ import annotations

from ops.mutants.bug import Bug

TASKS = (
    "tests/integration/mcp/test_tasks.py::test_a_server_that_was_started_again_is_not_asked_for_its_forerunner_s_task",
)
UNTRUSTED = ("tests/unit/turn/test_untrusted_results.py",)
CATALOGUE = ("tests/unit/tools/mcp/test_catalogue.py",)
INJECTED = (
    "tests/integration/test_prompt_injection.py::test_with_the_policy_no_change_of_an_attack_is_made_and_the_task_is_done",
)
HTTP = ("tests/integration/mcp/test_http.py",)
OAUTH = ("tests/integration/mcp/test_oauth.py",)
POLICY = "brainq/turn/call_plan.py"

BUGS = (
    Bug(
        "a restarted MCP server is asked for its forerunner's task",
        "brainq/tools/mcp/calls.py",
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
        "brainq/turn/call_plan.py",
        "() if brain.after_untrusted is None else untrusted_sources(brain, view)",
        "()",
        INJECTED,
    ),
    Bug(
        "reads ask after untrusted results, too",
        "brainq/turn/call_plan.py",
        "untrusted and not tool.spec.effect.is_read",
        "untrusted",
        UNTRUSTED,
    ),
    Bug(
        "tools of MCP servers are trusted where nothing is said",
        "brainq/tools/mcp/tools.py",
        'return not annotations or annotations.get("openWorldHint") is not False',
        'return bool(annotations) and annotations.get("openWorldHint") is True',
        CATALOGUE,
    ),
    Bug(
        "a connection that is refused ends what is in flight",
        "brainq/tools/mcp/calls.py",
        "isinstance(failure, RequestNotSent) and connection.asking > 0",
        "False",
        HTTP,
    ),
    Bug(
        "each request that was refused fetches a token of its own",
        "brainq/tools/mcp/http_transport.py",
        "(not is_answered and self._token() in (None, token))",
        "not is_answered",
        OAUTH,
    ),
)
