"""`brainq keys`: manage the keys that encrypt content in SQL."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.connect import open_operator
from brainq.cli.help import command_group, subcommand
from brainq.cli.options import AsJson, Yes, require_consent
from brainq.cli.output import ago, clean, counted, note, print_json, print_outcome, print_rows
from brainq.errors import ExitCode
from brainq.runtime.settings.extensions import load_extension

if TYPE_CHECKING:
    from brainq.cli.pages.layout import PageTable
    from brainq.contracts.encryption import ReencryptProgress, TenantKey

app = command_group("Manage the keys that encrypt content in SQL.")
Tenant = Annotated[
    str | None, typer.Option("--tenant", help="Only this tenant. Give its prefix with the colon, such as acme:")
]


@subcommand(app, "new")
def new(name: Annotated[str, typer.Argument(metavar="KEY_ID", help="The key's name, such as op-2026-11.")]) -> None:
    """Print a new operator key as a line for the file that BRAINQ_CONTENT_KEYS names.

    The first line of that file is the current key; the others decrypt older content. brainq stores no copy: if you lose
    the file, you lose all content.

    \b
    Examples:
      (umask 077; brainq keys new op-1 > content-keys)
    """
    sys.stdout.write(f"{load_extension('brainq.encryption', 'new_key')(name)}\n")


@subcommand(app, "list")
def list_keys(
    count: Annotated[
        bool,
        typer.Option(
            "--count", help="Also read all content, and count the rows that are not encrypted or use an older key."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the tenants' keys, each with the operator key that wraps it.

    \b
    Examples:
      brainq keys list
      brainq keys list --count
    """
    with open_operator() as operator:
        keys = operator.keys.list()
        clear, left = (operator.keys.in_clear(), operator.keys.left()) if count else ({}, {})
    if as_json and count:
        print_json({"keys": keys, "in_clear": clear, "left": left})
        return
    print_rows(
        keys, _keys_table, "no tenant has a key yet; each gets one when its first content is stored", as_json=as_json
    )
    if count:
        note(f"not encrypted: {_listed(clear)}")
        note(f"encrypted with an older key: {_listed(left)}")


@subcommand(app, "rotate")
def rotate(tenant: Tenant = None, as_json: AsJson = False) -> None:
    """Create new keys for tenants. Content written from now on uses them.

    Every process uses them within ten seconds. Old content stays readable; `brainq keys reencrypt` re-encrypts it.

    \b
    Examples:
      brainq keys rotate
      brainq keys rotate --tenant acme:
    """
    with open_operator() as operator:
        made = operator.keys.rotate(tenant)
    text = f"{counted(made, 'new key')}; `brainq keys reencrypt` re-encrypts old content"
    print_outcome({"made": made}, text, as_json=as_json)


@subcommand(app, "rewrap")
def rewrap(as_json: AsJson = False) -> None:
    """Encrypt (wrap) the tenants' keys with the first key of your key file.

    Content is not changed. Put the new key on the first line of every process's key file, then run this command. When
    it has finished you can delete the old line. Keep a copy of the old line, because backups made before need it.

    \b
    Examples:
      brainq keys rewrap
    """
    with open_operator() as operator:
        done = operator.keys.rewrap()
    text = f"{counted(done, 'key')} rewrapped; you can now delete the other lines of the key file"
    print_outcome({"rewrapped": done}, text, as_json=as_json)


@subcommand(app, "reencrypt")
def reencrypt(as_json: AsJson = False) -> None:
    """Re-encrypt old content with its tenant's current key, or decrypt it.

    This includes content stored before encryption was set up. You can run it next to live workers, because it uses
    short transactions. If it is interrupted, run it again: it continues where it stopped. If the first line of the key
    file is `clear`, it decrypts all content.

    \b
    Examples:
      brainq keys reencrypt
    """
    from brainq.contracts.encryption import KEY_CACHE_S, SETTLE_S

    with open_operator() as operator:
        done = operator.keys.reencrypt(_show_progress)
        left = operator.keys.left()
    again = (
        f"not done: {_listed(left)}; run this command again in {KEY_CACHE_S + SETTLE_S:g} s"
        if left
        else "all content is done"
    )
    print_outcome({"rows": done, "left": left}, f"{counted(done, 'row')} rewritten; {again}", as_json=as_json)


@subcommand(app, "shred")
def shred(
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant's session prefix, such as acme:")],
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete a tenant's keys permanently: its content can never be read again.

    Rows stay, with counts, times and tool names. The command is refused while a turn of the tenant is live. Content in
    backups becomes unreadable too, unless the backups contain the tenant's keys; in that case replace the operator key
    as well (docs/operate/encryption.md). Data in Redis stays until it expires. To delete it and all rows, use `brainq
    erase --tenant`.

    \b
    Examples:
      brainq keys shred --tenant acme: --yes
    """
    require_consent(f"Make all content of tenant {tenant!r} permanently unreadable?", yes=yes)
    with open_operator() as operator:
        gone = operator.keys.shred(tenant)
    text = f"{counted(gone, 'key')} of {tenant} removed; the content that they encrypted can never be read again"
    print_outcome({"removed": gone}, text, ok=gone > 0, exit_code=ExitCode.NOT_FOUND, as_json=as_json)


def _show_progress(progress: ReencryptProgress) -> None:
    note(f"{progress.table}: {progress.rows} of {progress.left}")


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{table} {rows}" for table, rows in counts.items()) or "nothing"


def _keys_table(rows: Sequence[TenantKey]) -> PageTable:
    from brainq.cli.pages.layout import PageTable, fact, key

    return PageTable(
        {
            key("tenant"): clean(row.tenant, lines=False),
            fact("key", 6): row.key_id,
            fact("state", 5): row.state,
            fact("wrapped by", 4): clean(row.operator_key, lines=False),
            fact("made", 3): ago(row.created_at),
        }
        for row in rows
    )
