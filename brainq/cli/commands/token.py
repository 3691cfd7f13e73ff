"""`brainq token`: create, list and revoke the tokens of HTTP callers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from brainq.cli.connect import open_store
from brainq.cli.help import command_group, subcommand
from brainq.cli.options import AsJson, parse_span_s
from brainq.cli.output import note, print_json, status_text, stdout
from brainq.errors import ExitCode

if TYPE_CHECKING:
    from brainq.cli.pages.layout import PageTable
    from brainq.contracts.rows import TokenRow

HELP = """Tokens for HTTP: who may do what, in which sessions.

    \b
    A token has session prefixes (its tenants) and verbs. Anything else is refused, and looks as if it did
    not exist:
      read      turns, results, events, history, approvals
      submit    start turns with the brain's own settings
      configure choose a turn's model, prompts, directory and limits
      steer     input, holds, readiness, cancel, pause
      decide    approve, deny, edit; results from outside
      operate   retry finalizer steps; the pools, with --sessions '*'
      metrics   the whole fleet's metrics, with --sessions '*'
    """
app = command_group(HELP)
TOKENS_REQUIRED_NOTE = (
    "from now on every gateway that uses this database requires a token, "
    "even after all tokens are revoked; the web page of `brainq dev` needs a token with the verb read"
)
NO_LIVE_TOKEN_NOTE = (
    "no valid token is left, but gateways that use this database still require one, so every caller gets a 401. "
    "Create one with `brainq token create NAME --sessions PREFIX --verb VERB`. A gateway requires no token only "
    "if its database (BRAINQ_SQL_URL or BRAINQ_DATA_DIR) never had one"
)


@subcommand(app, "create")
def create(
    name: Annotated[str, typer.Argument(help="The name of the token's owner, which the audit log shows.")],
    sessions: Annotated[
        list[str],
        typer.Option(
            "--sessions",
            "-s",
            metavar="PREFIX",
            help="The prefix of the sessions that the token may use, such as `acme:`; '*' means all sessions. "
            "Repeatable.",
        ),
    ],
    verb: Annotated[
        list[str],
        typer.Option(
            "--verb",
            metavar="VERB",
            help="What the token may do: read, submit, configure, steer, decide, operate or metrics. Repeatable.",
        ),
    ],
    expires_in: Annotated[
        str | None,
        typer.Option(
            "--expires-in",
            metavar="SPAN",
            help="How long the token is valid: 90m, 12h, 90d or 8w. If omitted, it is valid until revoked.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a token and print it on stdout. It is shown only once; SQL keeps a hash.

    \b
    Examples:
      brainq token create acme-web --sessions acme: --verb submit --verb read --expires-in 90d
      brainq token create ops --sessions '*' --verb read --verb operate
      TOKEN=$(brainq token create ci --sessions ci: --verb submit --verb read)
    """
    from brainq.app.access import Tokens

    seconds = None if expires_in is None else parse_span_s("--expires-in", expires_in)
    with open_store(make=True) as (store, where):
        is_first = not Tokens(store).list()
        made = Tokens(store).create(name, sessions, verb, seconds)
    if as_json:
        print_json({**_token_json(made.row), "token": made.text})
        return
    typer.echo(made.text)
    note(f"{_describe_token(made.row)}; its hash is stored in {where}", style="green")
    note("the token is not shown again; send it as `Authorization: Bearer ...`")
    if is_first:
        note(TOKENS_REQUIRED_NOTE, style="yellow")


@subcommand(app, "list")
def list_tokens(as_json: AsJson = False) -> None:
    """List tokens, newest first. The secrets are not shown, because brainq does not keep them.

    \b
    Examples:
      brainq token list
      brainq token list --json
    """
    from brainq.app.access import Tokens

    with open_store() as (store, where):
        rows = Tokens(store).list()
    if as_json:
        print_json([_token_json(row) for row in rows])
    elif rows:
        stdout().print(_tokens_table(rows))
    else:
        note(f"no tokens in {where}")


@subcommand(app, "revoke")
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="An id from `brainq token list`, or the token itself.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a token for good. Running gateways reject it within 5 seconds.

    \b
    Examples:
      brainq token revoke 3f9a41c07be2
    """
    from brainq.app.access import Tokens

    with open_store() as (store, where):
        row = Tokens(store).revoke(token_id)
        live = [one for one in Tokens(store).list() if one.state == "live"]
    if row is None:
        # Do not print the argument: it may be a secret of another deployment.
        note(f"brainq: {where} has no such token; see `brainq token list`", style="red")
        raise typer.Exit(ExitCode.NOT_FOUND)
    if as_json:
        print_json(_token_json(row))
    else:
        note(f"revoked: {_describe_token(row)}", style="green")
        if not live:
            note(NO_LIVE_TOKEN_NOTE, style="yellow")


def _token_json(row: TokenRow) -> dict[str, Any]:
    return {
        "id": row.token_id,
        "name": row.name,
        "sessions": row.sessions,
        "verbs": row.verbs,
        "state": row.state,
        "created_at": row.created_at.isoformat(),
        "expires_at": _instant(row.expires_at),
        "last_used_at": _instant(row.last_used_at),
        "revoked_at": _instant(row.revoked_at),
    }


def _describe_token(row: TokenRow) -> str:
    """Return one line with the token's id, owner, verbs and sessions."""
    where = "all sessions" if row.sessions == ("*",) else f"sessions {', '.join(row.sessions)}"
    until = f", until {row.expires_at:%Y-%m-%d %H:%M} UTC" if row.expires_at and row.state == "live" else ""
    return f"token {row.token_id} of {row.name!r} for {', '.join(row.verbs)} in {where}{until}"


def _tokens_table(rows: Sequence[TokenRow]) -> PageTable:
    from brainq.cli.pages.layout import PageTable, fact, key, words

    return PageTable(
        {
            key("id"): row.token_id,
            words("name", 6): row.name,
            fact("state", 5): status_text(row.state),
            words("sessions", 4): ", ".join(row.sessions),
            words("verbs", 3): ", ".join(row.verbs),
            fact("expires", 2): _minute(row.expires_at),
            fact("last used", 1): _minute(row.last_used_at),
        }
        for row in rows
    )


def _instant(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _minute(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else ""
