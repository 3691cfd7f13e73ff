"""`brainq token`: who may come in over HTTP, and for what."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.help import command_group, subcommand
from brainq.cli.options import AsJson
from brainq.errors import ExitCode

HELP = """Tokens for HTTP: who may do what, in whose sessions.

    \b
    A token has session prefixes (its tenants) and verbs. What is not given is refused, and looks as if it
    did not exist:
      read      turns, results, events, history, approvals
      submit    begin turns, as the brain says
      configure say of them which model, prompts, directory and limits they have
      steer     input, holds, readiness, cancel, pause
      decide    approve, deny, edit; results from outside
      operate   finalizer steps again; pools, with --sessions '*'
    """

app = command_group(HELP)


@subcommand(app, "create")
def create(
    name: Annotated[str, typer.Argument(help="Whose it is; the record names it as who decided.")],
    sessions: Annotated[
        list[str],
        typer.Option(
            "--sessions", "-s", metavar="PREFIX", help="`acme:` is all sessions that begin so; '*' is all. Repeatable."
        ),
    ],
    verb: Annotated[
        list[str],
        typer.Option("--verb", metavar="VERB", help="read, submit, configure, steer, decide or operate. Repeatable."),
    ],
    expires_in: Annotated[
        str | None,
        typer.Option("--expires-in", metavar="SPAN", help="90m, 12h, 90d, 8w. Without it: until it is revoked."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a token. It is printed this once, and nothing else on stdout; SQL keeps a hash.

    \b
    Examples:
      brainq token create acme-web --sessions acme: --verb submit --verb read --expires-in 90d
      brainq token create ops --sessions '*' --verb read --verb operate
      TOKEN=$(brainq token create ci --sessions ci: --verb submit --verb read)
    """
    from brainq.access import Tokens
    from brainq.cli.options import parse_span_s
    from brainq.cli.output import note, print_json
    from brainq.cli.pages import tokens

    seconds = None if expires_in is None else parse_span_s("--expires-in", expires_in)
    with tokens.open_token_store(make=True) as (store, where):
        is_first = not Tokens(store).list()
        made = Tokens(store).create(name, sessions, verb, seconds)
    if as_json:
        print_json({**tokens.token_json(made.row), "token": made.text})
        return
    typer.echo(made.text)
    note(f"{tokens.describe_token(made.row)}; kept in {where}", style="green")
    note("this is the only time it is shown; send it as `Authorization: Bearer ...`")
    if is_first:
        note(tokens.TOKENS_REQUIRED_NOTE, style="yellow")


@subcommand(app, "list")
def list_tokens(as_json: AsJson = False) -> None:
    """List tokens, the newest first. No secret is shown: none is kept.

    \b
    Examples:
      brainq token list
      brainq token list --json
    """
    from brainq.access import Tokens
    from brainq.cli.output import note, print_json, stdout
    from brainq.cli.pages import tokens

    with tokens.open_token_store() as (store, where):
        rows = Tokens(store).list()
    if as_json:
        print_json([tokens.token_json(row) for row in rows])
    elif rows:
        stdout().print(tokens.tokens_table(rows))
    else:
        note(f"no tokens in {where}")


@subcommand(app, "revoke")
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `brainq token list` shows it, or the whole token.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a token for good. Running gateways reject it within 5 seconds.

    \b
    Examples:
      brainq token revoke 3f9a41c07be2
    """
    from brainq.access import Tokens
    from brainq.cli.output import note, print_json
    from brainq.cli.pages import tokens

    with tokens.open_token_store() as (store, where):
        row = Tokens(store).revoke(token_id)
        live = [one for one in Tokens(store).list() if one.state == "live"]
    if row is None:
        # What was given may be a token of somewhere else, so it is not repeated.
        note(f"brainq: {where} has no such token; see `brainq token list`", style="red")
        raise typer.Exit(ExitCode.NOT_FOUND)
    if as_json:
        print_json(tokens.token_json(row))
    else:
        note(f"revoked: {tokens.describe_token(row)}", style="green")
        if not live:
            note(tokens.NO_LIVE_TOKEN_NOTE, style="yellow")
