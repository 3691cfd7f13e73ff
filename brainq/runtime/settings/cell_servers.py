"""The servers of a cell in the settings: its URLs, and the hash tag of its keys on a Redis Cluster."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import SecretStr

from brainq.contracts.cell import Cell, parse_cells
from brainq.errors import InvalidInput
from brainq.runtime.settings.cluster_url import in_slot


def servers_of(cell: Cell) -> dict[str, SecretStr | None]:
    """Return the URLs of a cell's servers by the settings that they stand for."""
    return {"redis_url": cell.redis_url, "sql_url": cell.sql_url, "broker_url": cell.broker_url}


def read_cells(given: object) -> str:
    """Return the JSON, or the content of the file at this path. A path that does not exist fails as JSON later."""
    text = given.get_secret_value() if isinstance(given, SecretStr) else given
    if not isinstance(text, str) or text.lstrip().startswith("{") or not text.strip():
        return text if isinstance(text, str) else ""
    try:
        return Path(text.strip()).read_text("utf-8")
    except (OSError, ValueError):
        return text


def url_in_slot(url: object, prefix: str, cell: str) -> SecretStr | None:
    """Return a given URL, that of a Redis Cluster with the hash tag of the cell's keys. Returns None without a URL."""
    text = url.get_secret_value() if isinstance(url, SecretStr) else url
    return SecretStr(in_slot(text, prefix, cell)) if isinstance(text, str) and text else None


def tagged_urls(values: Mapping[str, object], prefix: str) -> dict[str, SecretStr]:
    """Return the given URLs of the state and of the broker, with the hash tag of the process's cell."""
    cell = str(values.get("cell") or "")
    if not cell and (cells := read_cells(values.get("cells"))):
        with suppress(InvalidInput):  # the validator of `cells` reports it
            cell = parse_cells(cells)[0].name
    tagged = {name: url_in_slot(values.get(name), prefix, cell) for name in ("redis_url", "broker_url")}
    return {name: url for name, url in tagged.items() if url is not None}
