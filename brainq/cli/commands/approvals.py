"""`brainq approvals`, `approve`, `deny`, `complete` and `fail`: answer calls that wait for a person or a result."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.connect import open_brainless_client, open_client, open_operator
from brainq.cli.options import AsJson, Limit, read_json, read_json_object, read_text
from brainq.cli.output import note, print_outcome, print_rows, short
from brainq.errors import InvalidInput

if TYPE_CHECKING:
    from brainq.client.client import Client
    from brainq.contracts.people import Approval

ApprovalArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="TURN-CALL, as `brainq approvals` shows it; TURN may be a prefix or a request key."
    ),
]
By = Annotated[str, typer.Option("--by", help="Your name, recorded with the decision. By default your login name.")]
Token = Annotated[
    str,
    typer.Argument(
        metavar="TOKEN",
        help="The token that the tool issued. `@FILE` or `@-` (stdin) keeps it out of the process list.",
    ),
]


def approvals(
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only approvals of this session.")] = None,
    state: Annotated[
        str, typer.Option("--state", help="pending, approved, denied, expired, void (its turn ended first), or all.")
    ] = "pending",
    limit: Limit = 50,
    after: Annotated[
        str | None, typer.Option("--after", metavar="APPROVAL", help="The next page: approvals after this one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List calls that wait for approval, newest first.

    Arguments are shortened; --json has them complete.

    \b
    Examples:
      brainq approvals
      brainq approvals --session s1 --state all
      brainq approvals --json
    """
    from brainq.cli.pages.people import approvals_table
    from brainq.client import checks

    wanted = checks.approval_state(state)
    with open_operator() as operator:
        if operator.why_away:
            note(f"Redis is unreachable, so this list comes from SQL only: {operator.why_away}", style="yellow")
        rows = operator.approvals(session, wanted, limit, after=after)
    none = "no approvals" + (f" of session {session!r}" if session else "")
    none += "" if wanted is None else " that wait" if wanted == "pending" else f" in state {state!r}"
    print_rows(rows, approvals_table, none, as_json=as_json)


def approve(
    approval_id: ApprovalArgument,
    by: By = "",
    arguments: Annotated[
        str | None,
        typer.Option(
            "--arguments",
            metavar="JSON|@FILE",
            help="Run the call with these arguments instead of the model's; `@-` reads stdin.",
        ),
    ] = None,
    args_hash: Annotated[
        str | None,
        typer.Option(
            "--args-hash",
            help="Approve only if the arguments still have this hash, which `brainq approvals --json` shows.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Approve a call: it runs with the model's arguments, or with yours.

    Approving a call twice has no further effect. --arguments needs the brain (BRAINQ_APP or -A), because your arguments
    are checked against the tool's schema.

    \b
    Examples:
      brainq approve 01k7x2-c1-0
      brainq approve 01k7x2-c1-0 --arguments '{"path": "draft.md"}'
      brainq approve order-4711-c1-0 --arguments @arguments.json --by ada
    """
    if arguments is not None and args_hash is not None:
        raise InvalidInput(
            "--args-hash", "checks the model's arguments, which --arguments replaces; use only one of the two"
        )
    edited = None if arguments is None else read_json_object(arguments, "--arguments")
    if edited is None:
        with open_brainless_client() as client:
            approval = client.approve(_full_id(client, approval_id), by=by or _login_name(), args_hash=args_hash)
    else:
        with open_client() as client:  # only the brain knows the tool's schema
            approval = client.edit(_full_id(client, approval_id), edited, by=by or _login_name())
    _print_decision(approval, as_json)


def deny(
    approval_id: ApprovalArgument,
    reason: Annotated[str, typer.Option("--reason", help="The model reads it and continues without the call.")] = "",
    by: By = "",
    as_json: AsJson = False,
) -> None:
    """Deny a call. Its turn continues without it.

    \b
    Examples:
      brainq deny 01k7x2-c1-0
      brainq deny 01k7x2-c1-0 --reason "not before Friday" --by ada
    """
    with open_brainless_client() as client:
        approval = client.deny(_full_id(client, approval_id), reason, by=by or _login_name())
    _print_decision(approval, as_json)


def _full_id(client: Client, approval_id: str) -> str:
    """Return `approval_id` with the complete id of its turn. Raises InvalidInput, NotFound."""
    from brainq.contracts.ids import full_call_id, split_call_id

    turn, call = split_call_id(approval_id)
    return full_call_id(client.find(turn).turn_id, call)


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return ""


def _print_decision(approval: Approval, as_json: bool) -> None:
    by = f" by {approval.decided_by}" if approval.decided_by else ""
    print_outcome(
        approval,
        f"{approval.id} {short(approval.tool, 40)} is {approval.state}{by}"
        f"{', with other arguments' if approval.edited else ''}; "
        f"`brainq tail {approval.turn_id}` follows the turn",
        ok=approval.state == "approved",
        as_json=as_json,
    )


def complete(
    token: Token,
    result: Annotated[str, typer.Argument(metavar="JSON|@FILE", help="The result as JSON; `@-` reads stdin.")] = "null",
    partial: Annotated[bool, typer.Option("--partial", help="Mark the result as partial.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send the result of a call that is completed outside brainq. Only the first result counts.

    \b
    Examples:
      brainq complete @token.txt '{"approved": true}'
      brainq complete @token.txt @result.json --partial
      brainq complete 5f1c... '"done"'
    """
    with open_brainless_client() as client:
        taken = client.complete_call(read_text(token, "TOKEN").strip(), read_json(result, "RESULT"), partial=partial)
    _print_outcome(taken, as_json)


def fail(
    token: Token,
    error: Annotated[
        str,
        typer.Argument(
            metavar="ERROR", help="What failed; the model reads it. `@FILE` or `@-` (stdin) reads it from there."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Report that a call which is completed outside brainq has failed.

    \b
    Examples:
      brainq fail @token.txt "the courier lost it"
    """
    with open_brainless_client() as client:
        taken = client.fail_call(read_text(token, "TOKEN").strip(), read_text(error, "ERROR"))
    _print_outcome(taken, as_json)


def _print_outcome(taken: str, as_json: bool) -> None:
    meaning = {
        "settled": "the call has its result, and its turn continues",
        "early": "the tool has not returned yet; the call gets the result when it does",
        "late": "the call is no longer waiting; the result is recorded as late",
    }
    print_outcome({"taken": taken}, f"{taken}: {meaning[taken]}", ok=taken != "late", as_json=as_json)
