"""What SQL keeps of an ended turn when its content is to be kept out (`redact_logs`). Pure."""

from __future__ import annotations

from brainq.contracts.turn import NOT_KEPT, TurnRequest, TurnResult

CONTENT = (
    *("system_prompt", "skill_context", "output_schema", "metadata", "greeting"),
    *("attachments", "history", "client_tools", "options"),
)
"""What a request says beside its message that somebody wrote: texts, files, schemas."""


def redacted_request(request: TurnRequest) -> TurnRequest:
    """Who asked whom, and not what: the request is needed whole only until the turn has ended. Input that comes
    later becomes a turn of the same brain, with the same limits."""
    fields = TurnRequest.model_fields
    nothing = {name: fields[name].get_default(call_default_factory=True) for name in CONTENT}
    return request.model_copy(update=nothing | {"user_message": NOT_KEPT})


def redacted_result(result: TurnResult) -> TurnResult:
    """How the turn ended and what it used, without texts, sources, pack and diff. An error may quote anything:
    what stays of it is why the turn stopped."""
    return result.model_copy(
        update={
            "text": "",
            "local_citations": (),
            "web_citations": (),
            "rendered_content_paths": (),
            "context_pack_json": None,
            "last_agent_message": None,
            "diff": None,
            "parsed": None,
            "error": result.stop_reason.value if result.error else result.error,
            "warnings": (
                *result.warnings,
                f"the answer is no longer in Redis, and SQL has none of it {NOT_KEPT}",
            ),
        }
    )
