"""The client's verb that reads the audit log."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.client import checks
from brainq.client.connection import Connection
from brainq.contracts.act import Act
from brainq.contracts.answers import listed


class AuditVerbs:
    """The part of `Client` that reads the audit log, which `brainq.adapters.sql.audit` writes for every front."""

    _connection: Connection

    def audit(
        self,
        limit: int = 50,
        session_prefixes: Sequence[str] | None = None,
        *,
        who: str | None = None,
        act: str | None = None,
        turn: str | None = None,
        after: int | None = None,
    ) -> tuple[Act, ...]:
        """List what people and tokens did, newest first: who, when, from where, and to what.

        who        acts of this token, person or user
        act        acts of this kind: approve, deny, edit, result, cancel, hold, release, ready, pause, resume, drop,
                   interrupt, schedule, pause schedule, resume schedule, remove schedule, stop, lift, set budget,
                   raise budget, move, ramp, release build, forget, retry step, send again, delete response, erase,
                   bulk, stop bulk, rotate keys, rewrap keys, shred keys, make token, revoke token
        turn       acts on this turn
        after      the `id` of the last act of the previous page, in a deployment of one cell
        session_prefixes   acts on sessions that begin with one of these prefixes, such as ("acme:",)

        Submits and input are not in the audit log, because they have rows of their own. Raises InvalidInput.
        """
        theirs, most = checks.session_prefixes(session_prefixes), checks.limit(limit)
        asked = self._connection.ask(
            lambda wiring: wiring.store.acts.list(most, after, who=who, act=act, turn=turn, prefixes=theirs),
            prefixes=theirs,
        )
        found = sorted((one for acts in asked.values for one in acts), key=lambda one: (one.at, one.id), reverse=True)
        return listed(found[:most], asked)
