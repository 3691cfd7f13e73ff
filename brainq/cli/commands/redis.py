"""`brainq redis`: move all data in Redis to another server."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.connect import open_store
from brainq.cli.help import command_group, subcommand
from brainq.cli.options import AsJson
from brainq.cli.output import counted, print_outcome, stderr
from brainq.errors import InvalidInput

if TYPE_CHECKING:
    from brainq.adapters.redis.server_move import ServerMove
    from brainq.runtime.settings.deployment import Settings

app = command_group("The Redis of a deployment.")
NOTES = {"copying": "copying", "comparing": "comparing both servers", "cleaning": "deleting the old keys"}


@subcommand(app, "move")
def move_redis(
    to_url: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="URL",
            envvar="REDIS_MOVE_TO",
            help="The new Redis, such as redis+cluster://host:6379/; REDIS_MOVE_TO keeps a password out of `ps`.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Move all data in Redis to another server: to a Redis Cluster, or back.

    Stop all workers first (SIGTERM), and producers and gateways if you can: what they submit during the move waits in
    SQL. The command refuses if a worker runs or a lease is held. It copies every key until both servers have the same,
    closes the old one, and deletes its keys. Workers that start there afterwards refuse and name the new URL.

    If it is interrupted before the decision, the old server is used as before. Run it again: it continues. With several
    cells set BRAINQ_CELL to the one that moves.

    \b
    Examples:
      brainq redis move --to redis+cluster://redis-1:6379,redis-2:6379/
      BRAINQ_REDIS_URL=redis+cluster://redis-1:6379/ brainq redis move --to redis://redis:6379/0
    """
    from brainq.adapters.sql.audit import record_act
    from brainq.contracts.act import NewAct
    from brainq.runtime.settings.deployment import load_settings

    settings = load_settings()
    settings.require_cell()
    move = open_move(settings, to_url)
    shown, keys = move.target.shown, 0
    with open_store() as (store, _), closing(move.source), closing(move.target):
        with stderr().status("looking for workers ...") as status:
            for step in move.run():
                status.update(f"{NOTES[step.phase]} ... {counted(step.seen, 'key')}")
                if step.phase == "cleaning":
                    keys = step.seen
        record_act(store, NewAct("move redis", f"{move.source.shown} {shown}"))
    setting = "the cell's redis in BRAINQ_CELLS" if settings.cell else "BRAINQ_REDIS_URL"
    print_outcome(
        {"to": shown, "keys": keys},
        f"{counted(keys, 'key')} moved to {shown}; set {setting} to it for every process, then start them",
        as_json=as_json,
    )


def open_move(settings: Settings, to_url: str) -> ServerMove:
    """Open both ends of a move. Raises InvalidInput for a wrong URL, and SetupError if there is no Redis to move."""
    from pydantic import SecretStr

    from brainq.adapters.celery.names import unprefixed_lists
    from brainq.adapters.redis.server_move import MovePlace, ServerMove
    from brainq.app.devserver.redis_server import known_redis
    from brainq.runtime.settings.cluster_url import in_slot, key_prefix
    from brainq.runtime.settings.service_urls import REDIS_SCHEMES, checked_url
    from brainq.runtime.text.service_url import without_password

    try:
        checked_url(SecretStr(to_url), REDIS_SCHEMES)
    except ValueError as wrong:
        raise InvalidInput("--to", str(wrong)) from None
    from_url = known_redis(settings)
    there = in_slot(to_url, settings.prefix, settings.cell)
    return ServerMove(
        MovePlace(from_url, without_password(from_url), settings.key_prefix),
        MovePlace(there, without_password(to_url), key_prefix(there, settings.prefix)),
        foreign=unprefixed_lists(settings.key_prefix) if settings.broker_url is None else (),
    )
