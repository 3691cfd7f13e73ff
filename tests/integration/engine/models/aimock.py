"""aimock for the provider tests: one process for a module, told anew by each test what it holds."""

from __future__ import annotations

from typing import Any, cast

from examples.airline.aimock import Aimock, Fixture, add_fixtures


class AimockServer(Aimock):
    """Fixtures are matched in their order; every request that is served is in the journal."""

    def reset(self) -> None:
        """Forget fixtures, chance faults and journal."""
        self.control("POST", "/reset")

    def hold(self, *fixtures: Fixture) -> None:
        """Answer from these, and from what is held already."""
        add_fixtures(self.url, fixtures)

    def break_by_chance(self, **rates: float) -> None:
        """How often a request meets a fault: `dropRate`, `malformedRate`, `rateLimitRate`, `disconnectRate`."""
        self.control("POST", "/chaos", rates)

    def journal(self) -> list[dict[str, Any]]:
        """Every model request and what was done to it, in order."""
        return cast("list[dict[str, Any]]", self.control("GET", "/journal"))

    def statuses(self) -> list[int]:
        return [entry["response"]["status"] for entry in self.journal()]

    def chance_faults(self) -> set[str]:
        """The chance faults that fired since the reset."""
        return {entry["response"]["chaosAction"] for entry in self.journal() if "chaosAction" in entry["response"]}


def says(text: str, **more: Any) -> Fixture:
    """Every request is answered with `text`."""
    return {"match": {"model": "m"}, "response": {"content": text}, **more}


def fails(status: int, *, times: int = 1, **error: Any) -> list[Fixture]:
    """The first `times` requests are refused with `status`."""
    return [
        {
            "match": {"model": "m", "sequenceIndex": number},
            "response": {"error": {"message": "as told", "type": "server_error"}, "status": status, **error},
        }
        for number in range(times)
    ]
