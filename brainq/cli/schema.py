"""`brainq schema`: what other languages send and read, as JSON schemas."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class SchemaName(StrEnum):
    SUBMIT = "submit"
    EVENT = "event"
    RESULT = "result"


def schema(
    name: Annotated[
        SchemaName,
        typer.Argument(metavar="NAME", help="submit, event or result."),
    ],
) -> None:
    """Print a JSON schema, for programs that are not Python. It is draft 2020-12.

    submit is what the Celery task brainq.turn.submit takes, event is one of a turn's events, result is how
    a turn ended. What is spoken over HTTP is described by the gateway itself, at /v1/openapi.json.

    \b
    Examples:
      brainq schema submit > submit.schema.json
      brainq schema event | npx json-schema-to-typescript > event.ts
    """
    import json
    import sys

    from brainq.client.schemas import schema_of

    json.dump(schema_of(name.value), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
