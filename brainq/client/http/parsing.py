"""Reading the JSON of answers as the types of `brainq`, and writing the options of a submit as JSON."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

import brainq
from brainq.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from brainq import File

T = TypeVar("T")
_HISTORY_FIELDS = ("role", "content", "calls", "call_id", "name", "is_error")
_NOT_OVER_HTTP = {
    "turn_id": "a gateway makes the ids of turns; use request_key, under which a submit is repeated safely",
}


@cache
def _adapter(of: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(of)


def parse(of: type[T], value: Any) -> T:
    """Return JSON as a type. Fields that only a newer gateway knows are left out."""
    return cast("T", _adapter(of).validate_python(value, extra="ignore"))


def parse_all(of: type[T], values: Iterable[Any], missing_cells: Sequence[str] = ()) -> tuple[T, ...]:
    """Return a list as a tuple, which names the cells that are missing in it."""
    from brainq.contracts.answers import FromCells

    return FromCells.of([parse(of, value) for value in values], missing_cells)


def submit_body(verb: Callable[..., Any], options: Mapping[str, Any], **fields: str) -> dict[str, Any]:
    """Return the body of a submit. Raises InvalidInput and TypeError, as `Client.submit` does."""
    from brainq.client.options import submit_fields

    body: dict[str, Any] = {}
    for name, value in submit_fields(verb, options, **fields).items():
        if value is None or name == "request_key":
            continue
        if name in _NOT_OVER_HTTP:
            raise InvalidInput(name, _NOT_OVER_HTTP[name])
        body[name] = _WRITERS.get(name, _checked)(name, value)
    return body


def _checked(name: str, value: Any) -> Any:
    from brainq.contracts.base import check_json

    return check_json(name, value)


def files_body(name: str, given: object) -> list[dict[str, str]]:
    """Return files as JSON. Raises InvalidInput."""
    from brainq.contracts.file import read_files

    return [_file_body(file) for file in read_files(name, given)]


def _file_body(file: File) -> dict[str, str]:
    return {"data": base64.b64encode(file.data).decode(), "media_type": file.media_type, "name": file.name}


def _schema(name: str, given: Any) -> Any:
    return _checked(name, given.model_json_schema() if isinstance(given, type) else given)


def _options(name: str, given: Any) -> Any:
    return _checked(name, dict(given.explicit() if isinstance(given, brainq.ModelOptions) else given))


def _history(name: str, given: Any) -> list[dict[str, Any]]:
    return [_message(f"{name}[{at}]", message) for at, message in enumerate(given)]


def _message(name: str, given: Any) -> dict[str, Any]:
    if isinstance(given, brainq.Message):
        if given.attachments:
            raise InvalidInput(f"{name}.attachments", "a Message refers to files; send a dict with File objects")
        return given.model_dump(mode="json", include=set(_HISTORY_FIELDS), exclude_defaults=True) | {"role": given.role}
    fields = dict(cast("Mapping[str, Any]", given))
    files = fields.pop("attachments", None)
    return _checked(name, fields) | ({"attachments": files_body(f"{name}.attachments", files)} if files else {})


def _client_tools(name: str, given: Any) -> Any:
    tools = [tool.model_dump(mode="json") if isinstance(tool, brainq.ClientTool) else dict(tool) for tool in given]
    return _checked(name, tools)


_WRITERS: Mapping[str, Callable[[str, Any], Any]] = {
    "attachments": files_body,
    "output_schema": _schema,
    "options": _options,
    "history": _history,
    "client_tools": _client_tools,
}


def result_body(result: object, *, partial: bool) -> dict[str, Any]:
    """Return the body of a call's result: JSON, a File, or WithFiles. Raises InvalidInput."""
    files: Sequence[Any] = ()
    if isinstance(result, brainq.WithFiles):
        result, files = result.value, result.files
    elif isinstance(result, brainq.File):
        result, files = result.attachment.label, (result,)
    return {"result": _checked("result", result), "files": files_body("files", list(files)), "partial": partial}


def error_body(error: object) -> dict[str, Any]:
    """Return the body of a call's error. Raises InvalidInput for one that needs a direct Client."""
    if not isinstance(error, str):
        raise InvalidInput(
            "error", "over HTTP it is one line for the model; a direct Client also takes ToolError and OutcomeUnknown"
        )
    return {"error": error}
