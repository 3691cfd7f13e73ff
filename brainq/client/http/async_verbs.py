"""The client's verbs for people and operators, over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Unpack, cast
from urllib.parse import quote

import brainq
from brainq.client.http.async_handle import collect
from brainq.client.http.async_memories import AsyncHttpBudgets, AsyncHttpMemories, RowId, is_found
from brainq.client.http.parsing import error_body, parse, parse_all, result_body, submit_body
from brainq.errors import ApprovalNotFound, InvalidInput, NotFound, ScheduleNotFound, TokenRefused, TurnNotFound

if TYPE_CHECKING:
    from brainq import (
        Act,
        Approval,
        BuildChange,
        BulkReport,
        BulkVerb,
        Cancelled,
        CellsState,
        DeliveryRow,
        Fleet,
        FleetActivity,
        FleetScale,
        Missed,
        OnRunning,
        Schedule,
        SpendLine,
        Stop,
        StopKind,
        StopMode,
        SubmitOptions,
        Taken,
        Versions,
    )
    from brainq.client.http.sending import Api

BULK_LOOK_S = 0.5


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


class AsyncHttpVerbs:
    """The verbs of AsyncHttpClient for people and operators."""

    _api: Api

    @property
    def memories(self) -> AsyncHttpMemories:
        """The memories that brains keep across turns."""
        return AsyncHttpMemories(self._api)

    @property
    def budgets(self) -> AsyncHttpBudgets:
        """The budgets of model calls by hour, day and month."""
        return AsyncHttpBudgets(self._api)

    async def cancel(self, session_id: str, turn_id: str, reason: str = "") -> Cancelled:
        """See `TurnHandle.cancel`."""
        path = f"/v1/turns/{quote(turn_id, safe='')}/cancel"
        answer = await self._api.json(self._api.post(path, {"reason": reason}, missing=TurnNotFound))
        return cast("Cancelled", answer["cancelled"])

    async def approvals(
        self, session: str | None = None, state: str | None = "pending", limit: int = 50, *, after: str | None = None
    ) -> tuple[Approval, ...]:
        """List approval requests, the newest first. See `Client.approvals`."""
        query = {"session": session, "state": state or "all"}
        found, missing_cells = await collect(self._api, "/v1/approvals", "approvals", limit, after, query)
        return parse_all(brainq.Approval, found, missing_cells)

    async def approval(self, approval_id: str) -> Approval:
        """Return an approval as it is now. Raises ApprovalNotFound."""
        path = f"/v1/approvals/{quote(approval_id, safe='')}"
        return parse(brainq.Approval, await self._api.json(self._api.get(path, missing=ApprovalNotFound)))

    async def approve(self, approval_id: str, *, by: str = "", args_hash: str | None = None) -> Approval:
        """Let a call run. See `Client.approve`. The token's name is recorded before `by`."""
        return await self._decide(approval_id, "approve", {"by": by, "args_hash": args_hash})

    async def deny(self, approval_id: str, reason: str = "", *, by: str = "") -> Approval:
        """Refuse a call. The model reads `reason`, and the turn continues. See `Client.deny`."""
        return await self._decide(approval_id, "deny", {"by": by, "reason": reason})

    async def edit(
        self, approval_id: str, arguments: Mapping[str, Any], *, by: str = "", args_hash: str | None = None
    ) -> Approval:
        """Let a call run with these arguments in place of the model's. See `Client.edit`."""
        body = {"by": by, "args_hash": args_hash, "arguments": dict(arguments)}
        once = "look at client.approval(...) before you edit it again"
        return await self._decide(approval_id, "edit", body, once)

    async def _decide(self, approval_id: str, act: str, body: Mapping[str, Any], once: str = "") -> Approval:
        path = f"/v1/approvals/{quote(approval_id, safe='')}/{act}"
        call = self._api.post(path, body, missing=ApprovalNotFound, once=once)
        return parse(brainq.Approval, await self._api.json(call))

    async def complete_call(self, token: str, result: Any, *, partial: bool = False) -> Taken:
        """Give the result of a call that returned `Pending(token)`, once. See `Client.complete_call`."""
        return await self._outside(token, result_body(result, partial=partial))

    async def fail_call(self, token: str, error: str) -> Taken:
        """Give an error in place of a result: one line for the model. See `Client.fail_call`."""
        return await self._outside(token, error_body(error))

    async def _outside(self, token: str, body: Mapping[str, Any]) -> Taken:
        if not token:
            raise TokenRefused("no call waits for an empty token")
        return cast("Taken", (await self._api.json(self._api.post(f"/v1/outside/{quote(token)}", body)))["taken"])

    async def deliveries(
        self, state: str | None = None, limit: int = 50, after: RowId | None = None
    ) -> tuple[DeliveryRow, ...]:
        """List webhook deliveries, the newest first. See `Client.deliveries`. `url` is the host alone."""
        found, missing_cells = await collect(
            self._api, "/v1/webhooks/deliveries", "deliveries", limit, after, {"state": state}
        )
        return parse_all(
            brainq.DeliveryRow, [{**one, "row": one["id"], "url": one["host"]} for one in found], missing_cells
        )

    async def send_again(self, delivery: RowId) -> bool:
        """Make a dead delivery, by its `row`, due at once. Returns False if there is no such delivery."""
        try:
            await self._api.json(self._api.post(f"/v1/webhooks/deliveries/{quote(str(delivery), safe='')}/retry"))
        except NotFound:
            return False
        return True

    async def schedule(
        self,
        name: str,
        session_id: str,
        user_message: str,
        *,
        when: object = None,
        at: datetime | None = None,
        in_s: float | None = None,
        zone: str = "UTC",
        on_running: OnRunning = "skip",
        missed: Missed = "once",
        **options: Unpack[SubmitOptions],
    ) -> Schedule:
        """Submit a turn at a time, once or repeatedly. See `Client.schedule`.

        when: repeatedly: the text of a crontab, seconds, or a timedelta. Celery's own classes need a direct Client.
        """
        if isinstance(when, timedelta):
            when = when.total_seconds()
        if not isinstance(when, str | int | float | None):
            raise InvalidInput(
                "when", "over HTTP it is seconds, or the text of a crontab, such as */5 9-17 * * mon-fri"
            )
        texts = {"name": name, "session_id": session_id, "user_message": user_message}
        body = submit_body(AsyncHttpVerbs.schedule, options) | {
            **texts,
            "when": when,
            "at": _time(at),
            "in_s": in_s,
            "zone": zone,
            "on_running": on_running,
            "missed": missed,
        }
        await self._api.json(self._api.post("/v1/schedules", body))
        return await self.find_schedule(name)

    async def schedules(self, limit: int = 1000, *, after: str = "") -> tuple[Schedule, ...]:
        """List schedules by name. See `Client.schedules`."""
        found, missing_cells = await collect(self._api, "/v1/schedules", "schedules", limit, after or None)
        return parse_all(brainq.Schedule, found, missing_cells)

    async def find_schedule(self, name: str) -> Schedule:
        """Return a schedule by its name. Raises ScheduleNotFound."""
        call = self._api.get(_schedule_path(name), missing=ScheduleNotFound)
        return parse(brainq.Schedule, await self._api.json(call))

    async def pause_schedule(self, name: str) -> Schedule:
        """Pause a schedule: no run begins until it is resumed. Raises ScheduleNotFound."""
        await self._api.json(self._api.post(f"{_schedule_path(name)}/pause", missing=ScheduleNotFound))
        return await self.find_schedule(name)

    async def resume_schedule(self, name: str) -> Schedule:
        """Resume a paused schedule. See `Client.resume_schedule`. Raises ScheduleNotFound."""
        await self._api.json(self._api.post(f"{_schedule_path(name)}/resume", missing=ScheduleNotFound))
        return await self.find_schedule(name)

    async def remove_schedule(self, name: str) -> bool:
        """Remove a schedule. Turns that it has begun continue. Returns False if there is no such schedule."""
        return await is_found(self._api, _schedule_path(name))

    async def bulk(
        self,
        verb: BulkVerb,
        where: str,
        *,
        on_progress: Callable[[BulkReport], None] | None = None,
        dry_run: bool = False,
        rate: float = 20.0,
        most: int | None = None,
        reason: str = "",
        by: str = "",
    ) -> BulkReport:
        """Apply one verb to every turn that `where` selects. See `Client.bulk`. It runs in the gateway.

        Cancelling it stops the bulk; `on_progress` is called twice a second.
        """
        from asyncio import CancelledError

        report = await self.start_bulk(verb, where, dry_run=dry_run, rate=rate, most=most, reason=reason, by=by)
        try:
            while report.state == "running":
                await self._api.sleep(BULK_LOOK_S)
                report = await self.bulk_report(report.id)
                if on_progress is not None:
                    on_progress(report)
        except (CancelledError, KeyboardInterrupt):
            await self.stop_bulk(report.id)
            raise
        return report

    async def start_bulk(
        self,
        verb: BulkVerb,
        where: str,
        *,
        dry_run: bool = False,
        rate: float = 20.0,
        most: int | None = None,
        reason: str = "",
        by: str = "",
    ) -> BulkReport:
        """Start a bulk in the gateway, and return once it has begun. See `Client.start_bulk`."""
        body = {"verb": verb, "where": where, "dry_run": dry_run, "rate": rate, "most": most}
        call = self._api.post("/v1/bulk", body | {"reason": reason, "by": by}, once="`brainq audit` lists bulks")
        return parse(brainq.BulkReport, await self._api.json(call))

    async def bulk_report(self, bulk_id: str) -> BulkReport:
        """Return the progress of a bulk, or its outcome, for a week. Raises NotFound."""
        return parse(brainq.BulkReport, await self._api.json(self._api.get(f"/v1/bulk/{quote(bulk_id, safe='')}")))

    async def stop_bulk(self, bulk_id: str) -> bool:
        """Stop a bulk before its next turn. Returns False if it has ended. Raises NotFound."""
        return bool((await self._api.json(self._api.delete(f"/v1/bulk/{quote(bulk_id, safe='')}")))["changed"])

    async def stop(
        self,
        kind: StopKind,
        name: str,
        *,
        mode: StopMode = "pause",
        reason: str = "",
        by: str = "",
        tenant: str = "",
        ends_in_s: float | None = None,
    ) -> Stop:
        """Pause or forbid something by name, for every worker at once. See `Client.stop`."""
        body = {"kind": kind, "name": name, "mode": mode, "reason": reason, "by": by, "tenant": tenant}
        answer = await self._api.json(self._api.post("/v1/stops", body | {"ends_in_s": ends_in_s}))
        return parse(brainq.Stop, answer)

    async def lift(self, kind: StopKind, name: str, *, tenant: str = "") -> bool:
        """Lift a stop, so that waiting work continues. Returns False if there is no such stop."""
        return await is_found(self._api, f"/v1/stops/{kind}/{quote(name)}", {"tenant": tenant or None})

    async def stops(self) -> tuple[Stop, ...]:
        """List the stops in force by kind and name. See `Client.stops`."""
        return parse_all(brainq.Stop, (await self._api.json(self._api.get("/v1/stops")))["stops"])

    async def versions(self) -> Versions:
        """List the builds that have workers or turns, and which of them may stop."""
        return parse(brainq.Versions, await self._api.json(self._api.get("/v1/versions")))

    async def ramp_build(self, build: str, share: float, other: str | None = None) -> BuildChange:
        """Begin the turns of `share` per cent of all sessions on this build. See `Client.ramp_build`."""
        body = {"build": build, "share": share, "other": other}
        return parse(brainq.BuildChange, await self._api.json(self._api.post("/v1/versions/ramp", body)))

    async def release_build(self, build: str, to: str) -> BuildChange:
        """Let turns pinned to the brains of `build` continue on those of the build `to`. See `Client.release_build`."""
        body = {"build": build, "to": to}
        return parse(brainq.BuildChange, await self._api.json(self._api.post("/v1/versions/release", body)))

    async def audit(
        self,
        limit: int = 50,
        *,
        who: str | None = None,
        act: str | None = None,
        turn: str | None = None,
        after: int | None = None,
    ) -> tuple[Act, ...]:
        """List what people and tokens did, the newest first. See `Client.audit`."""
        query = {"who": who, "act": act, "turn": turn}
        found, missing_cells = await collect(self._api, "/v1/audit", "acts", limit, after, query)
        return parse_all(brainq.Act, found, missing_cells)

    async def spend(
        self, *, by: Sequence[str] = ("day",), since: datetime | None = None, until: datetime | None = None
    ) -> tuple[SpendLine, ...]:
        """Report what model calls have cost, one line per group. See `Client.spend`."""
        query = {"by": ",".join(by), "since": _time(since), "until": _time(until)}
        return parse_all(brainq.SpendLine, (await self._api.json(self._api.get("/v1/spend", query)))["lines"])

    async def fleet(self) -> Fleet:
        """Return the state of the fleet. See `Client.fleet`."""
        return parse(brainq.Fleet, await self._api.json(self._api.get("/v1/fleet")))

    async def activity(self) -> FleetActivity:
        """Return the turns, failures, durations and costs of each minute of the last hour, from SQL."""
        return parse(brainq.FleetActivity, await self._api.json(self._api.get("/v1/fleet/activity")))

    async def cells(self) -> CellsState:
        """Return the state of each cell, and the moves under way. See `Client.cells`."""
        return parse(brainq.CellsState, await self._api.json(self._api.get("/v1/cells")))

    async def scale(
        self,
        pool: str | None = None,
        *,
        least: int | None = None,
        most: int | None = None,
        build: str | None = None,
    ) -> FleetScale:
        """Return how many workers each pool, or `pool` alone, should have. See `Client.scale`."""
        query = {"pool": pool, "min": least, "max": most, "build": build}
        return parse(brainq.FleetScale, await self._api.json(self._api.get("/v1/scale", query)))

    async def metrics(self) -> str:
        """Return the fleet's metrics in Prometheus' text format. See `Client.metrics`."""
        return (await self._api.answer(self._api.get("/metrics"))).text


def _schedule_path(name: str) -> str:
    from brainq.contracts.ids import check_id

    return f"/v1/schedules/{quote(check_id('name', name), safe='')}"
