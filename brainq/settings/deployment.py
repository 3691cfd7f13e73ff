"""What a deployment can set, read from the environment (`BRAINQ_...`), and checked where it enters.

Durations are seconds and end in `_s`. A wrong value raises SetupError through `load_settings`, naming the
environment variable and the remedy.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from brainq.contracts.budgets import parse_budgets
from brainq.contracts.cell import Cell, parse_cells
from brainq.contracts.encryption import KeyPlace
from brainq.contracts.file import MAX_FILE_BYTES, FileLimits
from brainq.contracts.rate import parse_rates
from brainq.contracts.webhook import parse_webhooks
from brainq.errors import InvalidInput, SetupError
from brainq.settings.environment import read_env_file
from brainq.settings.http import HttpSettings
from brainq.settings.service_urls import BROKER_SCHEMES, REDIS_SCHEMES, checked_url, pooled_url

ENV_PREFIX = "BRAINQ_"
_KEY_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,30}:", re.ASCII)
_TENANT = re.compile(r"[A-Za-z0-9._@+=-]*:", re.ASCII)
_APP = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


class Concurrency(BaseModel):
    """Threads a worker of each pool runs; each worker process's `-c` wins over it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    coordinator: int = Field(default=100, ge=1, le=1000)
    parallel: int = Field(default=32, ge=1, le=1000)
    serial: int = Field(default=1, ge=1, le=100)
    finalizer: int = Field(default=8, ge=1, le=1000)


class Settings(HttpSettings):
    """All settings of brainq, frozen; those of the gateway are HttpSettings'.

    `Settings()` reads the environment; arguments win over it.
    """

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        frozen=True,
        extra="forbid",
        validate_default=True,
        hide_input_in_errors=True,
        env_ignore_empty=True,
    )

    app: str = "app:brain"
    """Where the brain is: `module:variable`."""

    build: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    """The name of the code that this process runs, such as an image's tag. None: builds are not distinguished."""

    redis_url: SecretStr | None = None
    """The Redis that holds the truth. None: an embedded server in `data_dir`."""

    broker_url: SecretStr | None = None
    """Celery's broker. None: the same Redis, which is what makes transactional doorbells possible."""

    sql_url: SecretStr = SecretStr("")
    """SQLAlchemy url. Empty: SQLite in `data_dir`."""

    sql_pooled: bool | None = None
    """Whether a pooler in transaction mode, such as PgBouncer, is before Postgres. None: that is found out."""

    content_keys: str = ""
    """The file of the operator's keys of content in SQL, one a line: `KEY_ID:base64`. Empty: it is in the clear."""

    keys_url: SecretStr = SecretStr("")
    """The database of the tenants' keys. Empty: a file beside SQLite's, or the same Postgres."""

    data_dir: Path = Path(".brainq")
    """Where the embedded Redis and SQLite keep their files; relative to the working directory."""

    prefix: str = "bq:"
    """Begins every Redis key, also those of Celery."""

    lease_s: float = Field(default=10.0, gt=0, le=3600)
    beat_s: float = Field(default=3.0, gt=0, le=3600)
    sweep_s: float = Field(default=1.0, gt=0, le=60)
    rering_s: float = Field(default=5.0, gt=0, le=600)
    keep_turn_s: float = Field(default=3600.0, ge=1, le=30 * 86400)
    """How long an ended turn stays in Redis."""

    keep_session_s: float = Field(default=7 * 86400.0, ge=1, le=365 * 86400)
    """How long an idle session's history stays in Redis; after that it is read from SQL."""

    cancel_grace_s: float = Field(default=2.0, gt=0, le=60)
    """How long the calls of a cancelled turn have to end by themselves; a function may use three quarters of it."""

    result_after_failing_s: float = Field(default=5.0, ge=0, le=60)
    """The result goes out after finalizer steps failed for this long."""

    max_attempts: int = Field(default=5, ge=1, le=20)
    """How often a read, or a call of an idempotent tool, is run whose workers are lost; from the third on by itself."""

    quarantine_processes: int = Field(default=8, ge=1, le=64)
    max_reply_bytes: int = Field(default=4_000_000, ge=1_000, le=64_000_000)
    """Of one reply of a model: it is cut off there. The replies and results of a turn may have four times as many."""

    max_file_bytes: int = Field(default=10_000_000, ge=1, le=MAX_FILE_BYTES)
    """Of one image or file of a message, or of a tool's result."""

    max_message_file_bytes: int = Field(default=30_000_000, ge=1, le=MAX_FILE_BYTES)
    """Of all files of one message, or of one result, together."""

    max_live_turns: int | None = Field(default=None, ge=1, le=1_000_000)
    """How many turns may be live at once, without parked ones; the others wait, and tenants take turns. None: five for
    every four threads of the coordinators that are alive."""

    max_live_turns_a_tenant: int | None = Field(default=None, ge=1, le=1_000_000)
    """How many of them one tenant may have. None: seven tenths, so that another's turns find room at once."""

    live_turns_of: dict[str, int] = {}
    """Tenants that may have fewer or more, as JSON: `{"acme:": 20}`. `:` is the tenant of sessions without a colon."""

    max_waiting_turns_a_session: int | None = Field(default=None, ge=1, le=1_000_000)
    """How many turns may wait in one session; a submit beyond is refused with QueueFull. None: as many as come."""

    max_waiting_turns_a_tenant: int | None = Field(default=None, ge=1, le=1_000_000)
    """How many sessions of one tenant may wait for room with their next turn. None: as many as come."""

    max_schedules_a_tenant: int = Field(default=1000, ge=1, le=1_000_000)
    """How many schedules with a run to come one tenant may have; a further one is refused with SchedulesFull."""

    cells: SecretStr = SecretStr("")
    """Whole deployments side by side, as JSON or the path of a JSON file: `{"a": {"redis": "redis://...", "sql":
    "postgresql://..."}, "b": {...}}`. The first is home. Clients, gateways, commands and workers need the same ones."""

    cell: str = ""
    """Which of them a worker serves. Clients, gateways and commands serve all of them."""

    webhooks: SecretStr = SecretStr("")
    """Webhooks that get endings and approvals, as JSON: `[{"url": ..., "secret": "whsec_...", "events": [...],
    "sessions": ["acme:"]}]`; the last two may be left out. Every worker needs it."""

    rates: str = ""
    """How many requests and tokens a minute models' services take from the whole fleet, such as
    `openai:gpt-5=60/min,200000 tokens/min; anthropic:*=50/min`. Every worker needs it."""

    budgets: str = ""
    """How much money model calls may cost by hour, day and month, such as `all day=100; tenant day=5 park; brain
    support month=200 refuse`. Every process needs it."""

    budget_zone: str = "UTC"
    """The IANA time zone by which a budget's days and months begin."""

    concurrency: Concurrency = Concurrency()
    scale_min: int = Field(default=1, ge=0, le=1000)
    """The fewest workers that `brainq scale` wants of a pool; `scale_max` are the most."""

    scale_max: int = Field(default=20, ge=1, le=1000)
    max_turns_a_worker: int | None = Field(default=None, ge=1, le=10_000_000)
    """After a part in so many turns a worker is replaced by a new one. None: it goes on."""

    max_rss_mb: int | None = Field(default=None, ge=50, le=1_000_000)
    """At so many MB of resident memory a worker is replaced by a new one. None: it goes on."""

    doorbell: Literal["transactional", "outbox"] = "transactional"
    task_events: bool = True
    """Celery task events, which Flower shows; they cost 0.2 to 0.9 ms of CPU a task."""

    remote_control: bool = True
    """Celery's remote control, which Flower's worker page needs: workers answer questions, and obey no command."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["console", "json"] = "console"

    @property
    def file_limits(self) -> FileLimits:
        return FileLimits(self.max_file_bytes, self.max_message_file_bytes)

    @property
    def key_place(self) -> KeyPlace | None:
        return KeyPlace.of(self.content_keys, pooled_url(self.keys_url, self.sql_pooled), self.sql_address)

    @property
    def sql_address(self) -> str:
        """`sql_url` with what `sql_pooled` says about it: what is connected to."""
        return pooled_url(self.sql_url, self.sql_pooled)

    def all_cells(self) -> tuple[Cell, ...]:
        """Empty in a deployment of one that has no name. Their SQL URLs are as `sql_address`."""
        cells = parse_cells(self.cells.get_secret_value())
        if self.sql_pooled is None:
            return cells
        return tuple(replace(cell, sql_url=SecretStr(pooled_url(cell.sql_url, self.sql_pooled))) for cell in cells)

    @property
    def in_cells(self) -> bool:
        """Whether there are several, so that a tenant may be in another one."""
        return bool(self.cells.get_secret_value()) and len(self.all_cells()) > 1

    def require_cell(self) -> None:
        """Raise SetupError for a worker that does not say which of several cells it serves."""
        if self.in_cells and not self.cell:
            names = ", ".join(cell.name for cell in self.all_cells())
            raise SetupError(f"BRAINQ_CELLS has {names}: set BRAINQ_CELL to the one that this worker serves")

    def of_cell(self, cell: Cell) -> Settings:
        """As a process that serves this cell has them."""
        return self.model_copy(update=_servers_of(cell) | {"cell": cell.name})

    @field_validator("app")
    @classmethod
    def _app_names_a_variable(cls, value: str) -> str:
        if not _APP.fullmatch(value):
            raise ValueError("must be `module:variable`, such as `shop.agent:brain`")
        return value

    @field_validator("prefix")
    @classmethod
    def _prefix_is_plain(cls, value: str) -> str:
        if not _KEY_PREFIX.fullmatch(value):
            raise ValueError("must be 1 to 31 of A-Z a-z 0-9 _ . - and end with one colon, such as `bq:`")
        return value

    @field_validator("redis_url")
    @classmethod
    def _redis_scheme(cls, value: SecretStr | None) -> SecretStr | None:
        return checked_url(value, REDIS_SCHEMES)

    @field_validator("broker_url")
    @classmethod
    def _broker_scheme(cls, value: SecretStr | None) -> SecretStr | None:
        return checked_url(value, BROKER_SCHEMES)

    @field_validator("live_turns_of")
    @classmethod
    def _tenants_are_prefixes(cls, value: dict[str, int]) -> dict[str, int]:
        for prefix, turns in value.items():
            if not _TENANT.fullmatch(prefix):
                raise ValueError(
                    f"{prefix!r} is not a tenant; write what its sessions' ids begin with, to the first colon: `acme:`"
                )
            if not 1 <= turns <= 1_000_000:
                raise ValueError(f"{turns} turns of {prefix!r} at once cannot be; write 1 to 1000000")
        return value

    @field_validator("webhooks")
    @classmethod
    def _webhooks_are_whole(cls, value: SecretStr) -> SecretStr:
        parse_webhooks(value.get_secret_value())
        return value

    @field_validator("rates")
    @classmethod
    def _rates_are_limits(cls, value: str) -> str:
        parse_rates(value)
        return value

    @field_validator("budgets")
    @classmethod
    def _budgets_are_amounts(cls, value: str) -> str:
        parse_budgets(value)
        return value

    @field_validator("budget_zone")
    @classmethod
    def _zone_is_known(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f"{value!r} is no time zone; write an IANA name, such as Europe/Berlin") from None
        return value

    @field_validator("log_level", "log_format", "doorbell", mode="before")
    @classmethod
    def _words_in_any_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("cells")
    @classmethod
    def _cells_are_whole(cls, value: SecretStr) -> SecretStr:
        for cell in parse_cells(value.get_secret_value()):
            checked_url(cell.redis_url, REDIS_SCHEMES)
            checked_url(cell.broker_url, BROKER_SCHEMES)
        return value

    @model_validator(mode="before")
    @classmethod
    def _sql_beside_the_data(cls, values: dict[str, Any]) -> dict[str, Any]:
        url = values.get("sql_url") or ""
        if (url.get_secret_value() if isinstance(url, SecretStr) else url) == "":
            path = Path(values.get("data_dir") or ".brainq").absolute() / "brainq.db"
            return {**values, "sql_url": f"sqlite:///{path}"}
        return values

    @model_validator(mode="before")
    @classmethod
    def _servers_of_the_cell(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Its cell's; home's for a process that serves all of them. What is wrong with cells the field's check says."""
        # pydantic runs what is defined last first: `_sql_beside_the_data` finds an address there.
        if not (text := _read_cells(values.get("cells"))):
            return values
        try:
            cells = {cell.name: cell for cell in parse_cells(text)}
        except InvalidInput:
            return {**values, "cells": text}
        name = values.get("cell") or next(iter(cells))
        if name not in cells:
            return {**values, "cells": text}
        servers = _servers_of(cells[name])
        for setting, url in servers.items():
            given = values.get(setting)
            url_given = given.get_secret_value() if isinstance(given, SecretStr) else given
            if url_given and url_given != (url and url.get_secret_value()):
                raise ValueError(
                    f"BRAINQ_{setting.upper()} is not what BRAINQ_CELLS has for cell {name!r}; unset it, or set "
                    "BRAINQ_CELL to the cell that is meant"
                )
        return {**values, **servers, "cells": text}

    @model_validator(mode="after")
    def _cell_is_one_of_them(self) -> Settings:
        names = [cell.name for cell in self.all_cells()]
        if self.cell and self.cell not in names:
            there = f"has {', '.join(names)}" if names else "is not set"
            raise ValueError(f"BRAINQ_CELL names a cell that is not in BRAINQ_CELLS, which {there}")
        return self

    @model_validator(mode="after")
    def _times_fit(self) -> Settings:
        if self.beat_s * 2 >= self.lease_s:
            raise ValueError(
                f"BRAINQ_BEAT_S={self.beat_s:g} must be less than half of BRAINQ_LEASE_S={self.lease_s:g}, "
                "or one late beat loses the lease; set BRAINQ_BEAT_S to a third of the lease"
            )
        if self.sweep_s >= self.lease_s:
            raise ValueError(
                f"BRAINQ_SWEEP_S={self.sweep_s:g} must be less than BRAINQ_LEASE_S={self.lease_s:g}, "
                "or lapsed leases wait for the sweep; set BRAINQ_SWEEP_S to a tenth of the lease"
            )
        if self.doorbell == "transactional" and self.broker_url is not None:
            raise ValueError(
                "BRAINQ_DOORBELL=transactional needs broker and state in one Redis; "
                "set BRAINQ_DOORBELL=outbox, or unset BRAINQ_BROKER_URL"
            )
        return self


def load_settings(**overrides: Any) -> Settings:
    """Read and check the settings; arguments win over the environment.

    Raises SetupError with one line for each wrong value, naming its environment variable. Values are not
    shown, because some are secret.
    """
    try:
        return Settings(**overrides)
    except ValidationError as error:
        problems = json.loads(error.json(include_url=False, include_input=False, include_context=False))
        raise SetupError("\n".join(_problem_line(problem) for problem in problems)) from None


def settings_here() -> Settings:
    """As every command reads them: the environment, and `.env` in the working directory for what is not set there.

    What `.env` sets stays set in this process: the brain's own code reads its keys there. Raises as `load_settings`.
    """
    read_env_file()
    return load_settings()


def _servers_of(cell: Cell) -> dict[str, SecretStr | None]:
    return {"redis_url": cell.redis_url, "sql_url": cell.sql_url, "broker_url": cell.broker_url}


def _read_cells(given: object) -> str:
    """The JSON itself, or what the file of this path holds; a path of nothing is left to the check of the JSON."""
    text = given.get_secret_value() if isinstance(given, SecretStr) else given
    if not isinstance(text, str) or text.lstrip().startswith("{") or not text.strip():
        return text if isinstance(text, str) else ""
    try:
        return Path(text.strip()).read_text("utf-8")
    except (OSError, ValueError):
        return text


def _problem_line(problem: dict[str, Any]) -> str:
    message = str(problem["msg"]).removeprefix("Value error, ")
    if not problem["loc"]:
        return message
    name = ENV_PREFIX + "__".join(str(part) for part in problem["loc"]).upper()
    return f"{name}: {message}"
