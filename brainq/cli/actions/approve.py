"""What `brainq approve` and `brainq deny` do."""

from __future__ import annotations

import getpass
from typing import Any

from brainq.cli.connect import open_brainless_client, open_client
from brainq.cli.output import note, print_json, short
from brainq.client.client import Client
from brainq.contracts.ids import full_call_id, split_call_id
from brainq.contracts.people import Approval


def approve_call(
    sought: str, *, by: str, arguments: dict[str, Any] | None, args_hash: str | None, as_json: bool
) -> None:
    """Approve, with other arguments if there are any, and say so. Raises BrainqError."""
    if arguments is None:
        with open_brainless_client() as client:
            approval = client.approve(_full_approval_id(client, sought), by=by or _login_name(), args_hash=args_hash)
    else:
        # Only the brain knows the tool's schema.
        with open_client() as client:
            approval = client.edit(_full_approval_id(client, sought), arguments, by=by or _login_name())
    _print_decision(approval, as_json)


def deny_call(sought: str, *, reason: str, by: str, as_json: bool) -> None:
    """Refuse, and say so. Raises BrainqError."""
    with open_brainless_client() as client:
        approval = client.deny(_full_approval_id(client, sought), reason, by=by or _login_name())
    _print_decision(approval, as_json)


def _full_approval_id(client: Client, sought: str) -> str:
    """`sought` with the whole id of its turn. Raises InvalidInput, NotFound."""
    turn, call = split_call_id(sought)
    return full_call_id(client.find(turn).turn_id, call)


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return ""


def _print_decision(approval: Approval, as_json: bool) -> None:
    if as_json:
        print_json(approval.model_dump(mode="json"))
        return
    with_others = ", with other arguments" if approval.edited else ""
    by = f" by {approval.decided_by}" if approval.decided_by else ""
    note(
        f"{approval.id} {short(approval.tool, 40)} is {approval.state}{by}{with_others}; "
        f"`brainq tail {approval.turn_id}` shows how its turn goes on",
        style="green" if approval.state == "approved" else "yellow",
    )
