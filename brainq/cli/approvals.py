"""`brainq approvals`, `approve` and `deny`: the calls that people are asked about."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import App, AsJson

ApprovalArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="TURN-CALL, as `brainq approvals` shows it; TURN may be cut short or be a key."
    ),
]
By = Annotated[str, typer.Option("--by", help="Who decides, for the record; by default your login name.")]


def approvals(
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only this session's.")] = None,
    state: Annotated[
        str,
        typer.Option(
            "--state", help="pending, approved, denied, expired, void (its turn ended first), or all."
        ),
    ] = "pending",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most so many.")] = 50,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="APPROVAL", help="The next page: behind this approval."),
    ] = None,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """List calls that wait for a person's approval, the newest first.

    Arguments are shown cut short; --json has them whole.

    \b
    Examples:
      brainq approvals
      brainq approvals --session s1 --state all
      brainq approvals --json
    """
    from brainq.cli.output import print_json, say, stdout
    from brainq.cli.reach import observer
    from brainq.cli.turn_people import approvals_as_table
    from brainq.client import checks

    wanted = checks.approval_state(state)
    with observer() as seen:
        if seen.why_away:
            say(f"Redis is away, this is what SQL knows: {seen.why_away}", style="yellow")
        found = seen.approvals(session, wanted, limit, after=after)
    if as_json:
        print_json([approval.model_dump(mode="json") for approval in found])
    elif not found:
        say(
            "no approvals"
            + (f" of session {session!r}" if session else "")
            + ("" if wanted is None else " that wait" if wanted == "pending" else f" in state {state!r}")
        )
    else:
        stdout().print(approvals_as_table(found))


def approve(
    approval_id: ApprovalArgument,
    by: By = "",
    arguments: Annotated[
        str | None,
        typer.Option(
            "--arguments",
            metavar="JSON|@FILE",
            help="Run it with these in place of the model's; `@-` reads stdin.",
        ),
    ] = None,
    args_hash: Annotated[
        str | None,
        typer.Option(
            "--args-hash", help="Only if its arguments still are those of this hash (--json shows it)."
        ),
    ] = None,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Approve a call: it runs, with its own arguments or with yours.

    Approving again changes nothing. With --arguments the brain is needed (BRAINQ_APP, or -A): they are held to the
    tool's schema.

    \b
    Examples:
      brainq approve 01k7x2-c1-0
      brainq approve 01k7x2-c1-0 --arguments '{"path": "draft.md"}'
      brainq approve order-4711-c1-0 --arguments @arguments.json --by ada
    """
    from brainq.cli.approving import approve_call
    from brainq.cli.given import object_of
    from brainq.errors import InvalidInput

    if arguments is not None and args_hash is not None:
        raise InvalidInput("--args-hash", "it is of the model's arguments; leave it out with --arguments")
    given = None if arguments is None else object_of(arguments, "--arguments")
    approve_call(approval_id, by=by, arguments=given, args_hash=args_hash, as_json=as_json)


def deny(
    approval_id: ApprovalArgument,
    reason: Annotated[
        str, typer.Option("--reason", help="The model reads it, and goes on without the call.")
    ] = "",
    by: By = "",
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Refuse a call. Its turn goes on.

    \b
    Examples:
      brainq deny 01k7x2-c1-0
      brainq deny 01k7x2-c1-0 --reason "not before Friday" --by ada
    """
    from brainq.cli.approving import deny_call

    deny_call(approval_id, reason=reason, by=by, as_json=as_json)
