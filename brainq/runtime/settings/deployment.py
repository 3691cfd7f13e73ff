"""The settings of a deployment, read from the environment (`BRAINQ_...`) and validated.

Durations are in seconds and end in `_s`. `load_settings` raises SetupError for a wrong value, with the name of the
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
from brainq.runtime.settings.cell_servers import read_cells, servers_of, tagged_urls, url_in_slot
from brainq.runtime.settings.cluster_url import key_prefix
from brainq.runtime.settings.environment import read_env_file
from brainq.runtime.settings.http import HttpSettings
from brainq.runtime.settings.service_urls import BROKER_SCHEMES, REDIS_SCHEMES, checked_url, pooled_url

ENV_PREFIX = "BRAINQ_"
_KEY_PREFIX = re.compile(r"(?P<tagged>\{)?[A-Za-z0-9][A-Za-z0-9_.-]{0,30}(?(tagged)\}):", re.ASCII)
_TENANT = re.compile(r"[A-Za-z0-9._@+=-]*:", re.ASCII)
_APP = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


class Concurrency(BaseModel):
    """The threads per worker in each pool. The option `-c` of a worker overrides it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    coordinator: int = Field(default=100, ge=1, le=1000)
    parallel: int = Field(default=32, ge=1, le=1000)
    serial: int = Field(default=1, ge=1, le=100)
    finalizer: int = Field(default=8, ge=1, le=1000)


class Settings(HttpSettings):
    """All settings of brainq, immutable. HttpSettings defines those of the gateway. `Settings()` reads the environment;
    arguments override it."""

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
    """The brain, as `module:variable`."""

    build: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    """The name of the code that this process runs, such as an image tag. If unset, builds are not distinguished."""

    redis_url: SecretStr | None = None
    """The Redis that holds the state of live turns. If unset, an embedded server in `data_dir` is used."""

    broker_url: SecretStr | None = None
    """Celery's broker. If unset, it is the same Redis, which makes transactional doorbells possible."""

    sql_url: SecretStr = SecretStr("")
    """The SQLAlchemy URL. If empty, SQLite in `data_dir` is used."""

    sql_pooled: bool | None = None
    """Whether a pooler in transaction mode, such as PgBouncer, is in front of Postgres. If unset, it is detected."""

    content_keys: str = ""
    """The file with the keys for content in SQL, one `KEY_ID:base64` per line. If empty, content is not encrypted."""

    keys_url: SecretStr = SecretStr("")
    """The database of the tenants' keys. If empty, it is a file next to SQLite's, or the same Postgres."""

    data_dir: Path = Path(".brainq")
    """The directory of the embedded Redis and SQLite, relative to the working directory."""

    prefix: str = "bq:"
    """The prefix of every Redis key, including Celery's. In braces, such as `{bq}:`, all keys are in one hash slot."""

    lease_s: float = Field(default=10.0, gt=0, le=3600)
    beat_s: float = Field(default=3.0, gt=0, le=3600)
    sweep_s: float = Field(default=1.0, gt=0, le=60)
    rering_s: float = Field(default=5.0, gt=0, le=600)
    keep_turn_s: float = Field(default=3600.0, ge=1, le=30 * 86400)
    """The seconds for which an ended turn stays in Redis."""

    keep_session_s: float = Field(default=7 * 86400.0, ge=1, le=365 * 86400)
    """The seconds for which the history of an idle session stays in Redis. After that it is read from SQL."""

    stay: bool = True
    """Whether a thread of a worker of several pools may continue with what its work has just opened."""

    cancel_grace_s: float = Field(default=2.0, gt=0, le=60)
    """The seconds that the calls of a cancelled turn have to end by themselves. A function may use three quarters of
    it."""

    result_after_failing_s: float = Field(default=5.0, ge=0, le=60)
    """If finalizer steps have failed for this many seconds, the result is published without waiting for them."""

    max_attempts: int = Field(default=5, ge=1, le=20)
    """The most attempts of a read or idempotent call whose workers are lost. The third and later run in quarantine."""

    quarantine_processes: int = Field(default=8, ge=1, le=64)
    max_reply_bytes: int = Field(default=4_000_000, ge=1_000, le=64_000_000)
    """The size at which a model's reply is cut off. All replies and results of a turn may have four times as much."""

    max_file_bytes: int = Field(default=10_000_000, ge=1, le=MAX_FILE_BYTES)
    """The largest size of an image or file of a message or of a tool's result."""

    max_message_file_bytes: int = Field(default=30_000_000, ge=1, le=MAX_FILE_BYTES)
    """The largest size of all files of a message or of a result together."""

    max_live_turns: int | None = Field(default=None, ge=1, le=1_000_000)
    """The highest number of live turns, not counting parked ones. Further turns wait, and tenants share the capacity
    fairly. If unset, it is five for every four threads of the running coordinators."""

    max_live_turns_a_tenant: int | None = Field(default=None, ge=1, le=1_000_000)
    """The highest number of live turns of one tenant. If unset, it is 70 % of the capacity, so that other tenants find
    room at once."""

    live_turns_of: dict[str, int] = {}
    """Exceptions for tenants, as JSON: `{"acme:": 20}`. `:` is the tenant of sessions without a colon."""

    max_waiting_turns_a_session: int | None = Field(default=None, ge=1, le=1_000_000)
    """The highest number of waiting turns of a session. Further submits raise QueueFull. If unset, there is no
    limit."""

    max_waiting_turns_a_tenant: int | None = Field(default=None, ge=1, le=1_000_000)
    """The highest number of a tenant's sessions that wait to start a turn. If unset, there is no limit."""

    max_schedules_a_tenant: int = Field(default=1000, ge=1, le=1_000_000)
    """The highest number of a tenant's schedules with a future run. A further one raises SchedulesFull."""

    cells: SecretStr = SecretStr("")
    """The cells, as JSON or the path of a JSON file: `{"a": {"redis": "redis://...", "sql": "postgresql://..."}, "b":
    {...}}`. The first is the home cell. All clients, gateways, commands and workers need the same value."""

    cell: str = ""
    """The cell that a worker serves. Clients, gateways and commands serve all cells."""

    webhooks: SecretStr = SecretStr("")
    """The webhooks, as JSON: `[{"url": ..., "secret": "whsec_...", "events": [...], "sessions": ["acme:"]}]`. The last
    two are optional. Every worker needs the same value."""

    rates: str = ""
    """The rate limits of models for the whole fleet, such as
    `openai:gpt-5=60/min,200000 tokens/min; anthropic:*=50/min`. Every worker needs the same value."""

    budgets: str = ""
    """Caps on the cost of model calls per hour, day and month, such as `all day=100; tenant day=5 park; brain support
    month=200 refuse`. Every process needs the same value."""

    budget_zone: str = "UTC"
    """The IANA time zone in which a budget's days and months begin."""

    concurrency: Concurrency = Concurrency()
    scale_min: int = Field(default=1, ge=0, le=1000)
    """The lowest number of workers of a pool that `brainq scale` returns; `scale_max` is the highest."""

    scale_max: int = Field(default=20, ge=1, le=1000)
    max_turns_a_worker: int | None = Field(default=None, ge=1, le=10_000_000)
    """The number of turns after which a worker is replaced by a new one. If unset, it is not replaced."""

    max_rss_mb: int | None = Field(default=None, ge=50, le=1_000_000)
    """The resident memory in MB at which a worker is replaced by a new one. If unset, it is not replaced."""

    doorbell: Literal["transactional", "outbox"] = "transactional"
    task_events: bool = True
    """Whether workers send Celery's task events, which Flower shows. They cost 0.2 to 0.9 ms of CPU per task."""

    remote_control: bool = True
    """Whether workers answer Celery's `inspect`, which Flower's worker page needs. They execute no commands."""

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
        """The URL to connect to: `sql_url` with the option of `sql_pooled`."""
        return pooled_url(self.sql_url, self.sql_pooled)

    def all_cells(self) -> tuple[Cell, ...]:
        """Return all cells, or nothing if BRAINQ_CELLS is not set. Their SQL URLs have the option of `sql_pooled`."""
        cells = parse_cells(self.cells.get_secret_value())
        if self.sql_pooled is None:
            return cells
        return tuple(replace(cell, sql_url=SecretStr(pooled_url(cell.sql_url, self.sql_pooled))) for cell in cells)

    @property
    def in_cells(self) -> bool:
        return len(self.all_cells()) > 1  # a tenant may be in another one

    def require_cell(self) -> None:
        if self.in_cells and not self.cell:
            names = ", ".join(cell.name for cell in self.all_cells())
            raise SetupError(f"BRAINQ_CELLS has the cells {names}; set BRAINQ_CELL to the one that this worker serves")

    def of_cell(self, cell: Cell) -> Settings:
        """Return the settings of a process that serves this cell."""
        servers = {name: url_in_slot(url, self.prefix, cell.name) for name, url in servers_of(cell).items()}
        return self.model_copy(update=servers | {"cell": cell.name})

    @property
    def key_prefix(self) -> str:
        """The prefix of every key of the state: `prefix`, or the hash tag of a cell's keys on a Redis Cluster."""
        return key_prefix(self.redis_url.get_secret_value() if self.redis_url else "", self.prefix)

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
            raise ValueError("must be 1 to 31 of A-Z a-z 0-9 _ . - and end with one colon, such as `bq:` or `{bq}:`")
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
                    f"{prefix!r} is not a tenant; write the prefix of its session ids up to the first colon: `acme:`"
                )
            if not 1 <= turns <= 1_000_000:
                raise ValueError(f"{turns} live turns for {prefix!r} is out of range; write 1 to 1000000")
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
            raise ValueError(f"{value!r} is not a time zone; write an IANA name, such as Europe/Berlin") from None
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
    def _one_slot_of_a_cluster(cls, values: dict[str, Any]) -> dict[str, Any]:
        return values | tagged_urls(values, str(values.get("prefix") or cls.model_fields["prefix"].default))

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
        """Fill in the servers of the process's cell, or of home's. The validator of `cells` reports errors in it."""
        # pydantic runs the last-defined validator first, so `_sql_beside_the_data` already finds an address.
        if not (text := read_cells(values.get("cells"))):
            return values
        try:
            cells = {cell.name: cell for cell in parse_cells(text)}
        except InvalidInput:
            return {**values, "cells": text}
        name = values.get("cell") or next(iter(cells))
        if name not in cells:
            return {**values, "cells": text}
        servers = servers_of(cells[name])
        for setting, url in servers.items():
            given = values.get(setting)
            url_given = given.get_secret_value() if isinstance(given, SecretStr) else given
            if url_given and url_given != (url and url.get_secret_value()):
                raise ValueError(
                    f"BRAINQ_{setting.upper()} differs from the value in BRAINQ_CELLS for cell {name!r}; unset it, or "
                    "set BRAINQ_CELL to another cell"
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
    """Read and validate the settings. Arguments override the environment.

    Raises SetupError with a line for each wrong value that names its environment variable. Values are not shown,
    because some are secret.
    """
    try:
        return Settings(**overrides)
    except ValidationError as error:
        problems = json.loads(error.json(include_url=False, include_input=False, include_context=False))
        raise SetupError("\n".join(_problem_line(problem) for problem in problems)) from None


def settings_here() -> Settings:
    """Read the settings as every command does, from the environment and then from `.env` in the working directory.

    The values from `.env` stay in this process's environment, where the brain's code reads its keys. Raises the errors
    of `load_settings`.
    """
    read_env_file()
    return load_settings()


def _problem_line(problem: dict[str, Any]) -> str:
    message = str(problem["msg"]).removeprefix("Value error, ")
    if not problem["loc"]:
        return message
    name = ENV_PREFIX + "__".join(str(part) for part in problem["loc"]).upper()
    return f"{name}: {message}"
