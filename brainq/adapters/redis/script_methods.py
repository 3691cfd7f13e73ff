"""Methods whose body is a script of `lua/`.

    @script("turn_beat")
    def beat(self, claim: TurnClaim) -> Literal["OK", "CANCEL", "LOST"]:
        \"\"\"Renew the lease.\"\"\"
        ...

The signature is what callers see. The header of the script names its arguments and its replies. The code between the
two is written when the method is first used, as `dataclass` writes an `__init__`. An argument of the header comes from
the first of these that exists:

    1. the decorator's keyword of that name: a constant, or `Parameter(NAME)`: the parameter with that other name
    2. the method's parameter of that name; for `timeout_ms` also a parameter `timeout_s`
    3. a field of a parameter whose type is a contract (`FIELDS` in `script_values.py`): `owner` of a TurnClaim
    4. the attribute of the object: for `lease_ms` it is `self._lease_ms`

By default the method returns the word of the reply. The decorator's keyword of that word replaces it: a function is
called with the fields of the reply, and any other value is returned itself. `others` is a function that is called with
the word and the fields of all replies that have no keyword.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar, cast, get_args

from brainq.adapters.redis import script_values
from brainq.adapters.redis.connection import as_mapping
from brainq.adapters.redis.keys import BASES, DERIVED, key_source
from brainq.adapters.redis.script_headers import ENUMS, LITERALS, HeaderField, HeaderReply
from brainq.adapters.redis.script_text import read_signature
from brainq.adapters.redis.scripts import Replies, ScriptCall, undeclared
from brainq.errors import ScriptError

Method = TypeVar("Method", bound=Callable[..., Any])


_PLAIN = re.compile(
    r"(?:str|int|float|bool|EventKind|TraceStatus|Ending|StopReason|RequestTryEnd)(?: \| None)?"
    r"|Sequence\[str\]|Literal\[.*\]"
)


class Parameter(str):
    """The name of a parameter, for an argument that the script calls by another name."""

    __slots__ = ()


def script(name: str, *, patient: bool = False, **given: object) -> Callable[[Method], Method]:
    """Make the method run the script of this name.

    patient   run it by `self._owned`, which sends it again while Redis is unavailable, not by `self._scripts`
    given     sources for arguments of the script, by their names; values for replies, by their words; `others`
    """
    return functools.partial(_as_method, name, "scripts.run({})", patient, given)


def script_call(name: str, *, patient: bool = False, **given: object) -> Callable[[Method], Method]:
    """Declare a method like `script`, but return the ScriptCall for the caller to run."""
    return functools.partial(_as_method, name, "ScriptCall(scripts, {})", patient, given)


def _as_method(name: str, call: str, patient: bool, given: Mapping[str, object], declared: Method) -> Method:
    method: Any = ScriptMethod(name, call, patient, given, declared)
    return method


class ScriptMethod:
    """A declared method. At its first use it replaces itself, in its class, by the function it stands for."""

    def __init__(self, name: str, call: str, patient: bool, given: Mapping[str, object], declared: Any) -> None:
        self.script = name
        self.declared = declared
        self._call = call
        self._patient = patient
        self._given = given

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        function = self.make()
        setattr(self._owner, self._name, function)
        return function.__get__(instance, owner)

    def make(self) -> Any:
        """Make the function. Raises ScriptError if the signature of the method and the header do not fit."""
        signature, parameters = read_signature(self.script), inspect.signature(self.declared).parameters
        sources = _Sources(self.script, {name: str(each.annotation) for name, each in parameters.items()}, self._given)
        values = [*map(sources.key, signature.keys), *map(sources.argument, signature.args)]
        if signature.more_args:
            values.append(f"*{sources.argument(signature.more_args)}")
        session = "session_id" if "session_id" in sources.names else '""'
        call = f"scripts.loaded[{self.script!r}], replies, {session}, [{', '.join(values)}]"
        bases = {base: text for base, text in BASES.items() if re.search(rf"\b{base}\b", call)}
        body = [
            f"scripts = self.{'_owned' if self._patient else '_scripts'}",
            "keys = scripts.keys",
            *(f"{name} = {source}" for name, source in sources.names.items() if name != source),
            *(f"{base} = {text}" for base, text in bases.items()),
            f"return {self._call.format(call)}",
        ]
        sources.check_all_used("\n".join(body))
        replies = Replies(self.script, {reply.word: self._reader(reply) for reply in signature.replies})
        # In one line: a traceback then shows the line of the decorator, which names the script.
        return self._executed(f"def {self._name}({_parameters(parameters)}): {'; '.join(body)}", replies)

    def _executed(self, text: str, replies: Replies) -> Any:
        declared = self.declared
        names = {**vars(script_values), "ScriptCall": ScriptCall, "replies": replies}
        names |= {f"given_{name}": value for name, value in self._given.items()}
        code = declared.__code__
        exec(compile("\n" * (code.co_firstlineno - 1) + text, code.co_filename, "exec"), names)
        function: Any = names[self._name]
        function.__defaults__, function.__kwdefaults__ = declared.__defaults__, declared.__kwdefaults__
        function.script_method = self
        return functools.wraps(declared)(function)

    def _reader(self, reply: HeaderReply) -> Callable[[list[Any]], Any]:
        """Return the function that reads a reply of this word."""
        fields = [*reply.fields, *([reply.rest] if reply.rest else [])]
        if inspect.signature(self.declared).return_annotation == "None":
            return lambda _: None
        value = self._given.get(reply.word, reply.word)
        if reply.word not in self._given and (others := self._given.get("others")):
            value = functools.partial(cast("Callable[..., Any]", others), reply.word)
        elif reply.word not in self._given and fields:
            raise ScriptError(f"{self.script}.lua: {self._name} does not say what becomes of the reply {reply.word}")
        if not callable(value):
            return lambda _: value
        read = [_read(self.script, field).format(f"reply[{at}]") for at, field in enumerate(reply.fields, 1)]
        if reply.rest:
            each = _read(self.script, reply.rest).format("each")
            read.append(f"tuple([{each} for each in reply[{len(read) + 1}:]])")
        return eval(f"lambda reply: value({', '.join(read)})", {**_READERS, "value": value})


def _parameters(parameters: Mapping[str, inspect.Parameter]) -> str:
    """Return the parameters of a method as a `def` writes them. Their defaults are set later."""
    names = list(parameters)
    keywords = [name for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY]
    if keywords:
        names.insert(names.index(keywords[0]), "*")
    return ", ".join(names)


class _Sources:
    """The sources of the keys and arguments of a call: Python over the parameters of the method.

    names   local variables that those expressions use, and their values
    """

    def __init__(self, script: str, parameters: Mapping[str, str], given: Mapping[str, object]) -> None:
        self._script = script
        self._parameters = parameters
        self._given = given
        found = {name: self._of_parameters(self._other_name(name)) for name in ("session_id", "turn_id", "model")}
        self.names = {name: source for name, source in found.items() if source is not None}

    def key(self, name: str) -> str:
        parameter = self._other_name(name)
        return parameter if self._parameters.get(parameter) == "str" else key_source(name)

    def argument(self, arg: HeaderField) -> str:
        name = arg.name
        if name in DERIVED:
            return _sent(arg, DERIVED[name])
        if name in self._given and not isinstance(self._given[name], Parameter):
            return _sent(arg, f"given_{name}")
        parameter = self._other_name(name)
        seconds = parameter if parameter != name else f"{name.removesuffix('_ms')}_s"
        if name.endswith("_ms") and name not in self._parameters and seconds in self._parameters:
            ms = f"int({seconds} * 1000)"
            return f'("" if {seconds} is None else {ms})' if arg.kind == "n?" else ms
        return _sent(arg, self._of_parameters(parameter) or f"self._{name}")

    def check_all_used(self, body: str) -> None:
        """Raise ScriptError if the call does not use a parameter."""
        used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
        for name in self._parameters:
            if name not in used:
                raise ScriptError(
                    f"{self._script}.lua: its method has a parameter {name!r} that the script does not take"
                )

    def _other_name(self, name: str) -> str:
        given = self._given.get(name)
        return given if isinstance(given, Parameter) else name

    def _of_parameters(self, name: str) -> str | None:
        """Return the parameter of this name, or the field of one, in the form in which scripts take contracts."""
        if name in self._parameters:
            forms, annotation = script_values.FORMS, self._parameters[name]
            form = forms.get(f"{name}: {annotation}") or forms.get(annotation)
            if form is None and not _PLAIN.fullmatch(annotation):
                raise ScriptError(f"{self._script}.lua: FORMS lacks {annotation!r}, the type of parameter {name!r}")
            return (form or "{}").format(name)
        for parameter, annotation in self._parameters.items():
            if name in (fields := script_values.FIELDS.get(annotation, {})):
                return fields[name].format(parameter)
        return None


def _sent(arg: HeaderField, value: str) -> str:
    """Return Python for a value as it is sent, by its type in the header."""
    forms = {
        "n?": '("" if {0} is None else {0})',
        "f?": '("" if {0} is None else repr({0}))',
        "b": '("1" if {0} else "0")',
        "words": '" ".join({0})',
    }
    return forms.get(arg.kind, "{0}").format(value)


def _read(script: str, field: HeaderField) -> str:
    """Return Python that reads a field of a reply, by its type in the header."""
    forms = {
        "": "{0}",
        "n": "int({0})",
        "b": '{0} == "1"',
        "words": "tuple({0}.split())",
        "rows": 'tuple(tuple(row.split()) for row in {0}.split(",") if row)',
        "hash": "as_mapping({0})",
    }
    if field.kind in forms:
        return forms[field.kind]
    enums = [choice for choice in field.choices if choice in ENUMS]
    words = tuple(choice for choice in field.choices if choice not in ENUMS)
    if not enums:
        declared = f"get_args({field.kind})" if field.kind in LITERALS else repr(words)
        return f"closed({script!r}, {{0}}, {declared})"
    return f"{{0}} if {{0}} in {words!r} else {enums[0]}({{0}})" if words else f"{enums[0]}({{0}})"


def _closed(script: str, word: str, declared: tuple[str, ...]) -> str:
    """Return `word` if it is declared. Raises ScriptError otherwise."""
    if word not in declared:
        raise undeclared(script, word, declared)
    return word


_READERS: dict[str, Any] = {
    "as_mapping": as_mapping,
    "closed": _closed,
    "get_args": get_args,
    **{name: getattr(import_module(module), name) for name, module in (ENUMS | LITERALS).items()},
}
