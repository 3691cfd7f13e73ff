"""The tools of a brain, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from brainq.contracts.tool import ToolSpec
from brainq.errors import InvalidInput
from brainq.tools.schema import check_function_takes, check_tool_schema
from brainq.tools.tool import Tool


class ToolRegistry(Mapping[str, Tool]):
    """Name -> Tool, in the order of adding. Filled while a brain's module is imported, then only read.

    specs   name -> ToolSpec, read-only: what gates, scheduler and model need to know
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._specs: dict[str, ToolSpec] = {}
        self.specs: Mapping[str, ToolSpec] = MappingProxyType(self._specs)
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        """Raises InvalidInput if the name is taken, ToolSchemaError if no arguments can be held to its schema."""
        if tool.binder is None:  # its schema came from elsewhere, and `make_tool` may not have seen it
            check_tool_schema(tool.name, tool.spec.parameters)
            check_function_takes(tool.name, tool.function, tool.spec.parameters, tool.context_param)
        if tool.name in self._tools:
            raise InvalidInput(
                "tools",
                f"there are two tools named {tool.name!r} "
                f"({_origin(self._tools[tool.name])} and {_origin(tool)}); give one of them another name=",
            )
        self._tools[tool.name] = tool
        self._specs[tool.name] = tool.spec

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


def _origin(tool: Tool) -> str:
    return f"{tool.function.__module__}.{tool.function.__qualname__}"
