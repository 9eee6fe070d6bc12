"""Any Python function with type hints as a tool."""

from __future__ import annotations

import asyncio
import inspect
import re
import traceback
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from copilot_nb.errors import ToolError, UsageError
from copilot_nb.events import JSON
from copilot_nb.tools.base import Tool, ToolContext, ToolResult
from copilot_nb.tools.capture import capturing
from copilot_nb.tools.results import cap, value_bundle, value_text

TRACEBACK_LIMIT = 4_000
_NAME = re.compile(r"[^A-Za-z0-9_-]")


def function_tool(
    function: Callable[..., Any], *, name: str | None = None, skip_permission: bool = False
) -> Tool:
    """A tool that calls `function`.

    The docstring's first part describes it to the model, its parameter sections (numpy or Google style)
    the arguments; the schema comes from the type hints, and arguments are converted to them. An ordinary
    function runs in a worker thread, so that the kernel stays responsive; write it ``async`` to have it
    on the kernel's main thread. What it prints comes before its result; what it raises goes to the model.

    Parameters
    ----------
    function
        Any callable with readable hints. A parameter annotated `ToolContext` gets the call's context.
    """
    label = str(name or getattr(function, "__name__", type(function).__name__))
    if label == "<lambda>":
        raise UsageError("A lambda has no name the model could call: define a function, or give name=….")
    call = _Call(function)
    text, described = read_docstring(inspect.getdoc(function) or "")
    return Tool(
        name=_NAME.sub("_", label)[:64],
        description=text or f"Call the user's function {label}.",
        handler=call.run,
        parameters=call.schema(described),
        skip_permission=skip_permission,
    )


class _Call:
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        target = function if inspect.isroutine(function) else type(function).__call__
        try:
            hints = typing.get_type_hints(target, include_extras=True)
        except (NameError, TypeError) as error:
            raise UsageError(f"The type hints of {function!r} cannot be read: {error}") from error
        self._types: dict[str, Any] = {}
        self._required: list[str] = []
        self._defaults: dict[str, Any] = {}
        self._context: str | None = None
        self._open = False
        for parameter in inspect.signature(function).parameters.values():
            self._add(parameter, hints.get(parameter.name, Any))

    def _add(self, parameter: inspect.Parameter, hint: Any) -> None:
        if hint is ToolContext:
            self._context = parameter.name
        elif parameter.kind is parameter.VAR_KEYWORD:
            self._open = True
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise UsageError(
                f"{self._function!r} takes {parameter.name!r} by position only; tools get named arguments."
            )
        else:
            self._types[parameter.name] = hint
            if parameter.default is parameter.empty:
                self._required.append(parameter.name)
            else:
                self._defaults[parameter.name] = parameter.default

    def schema(self, described: dict[str, str]) -> JSON:
        """The JSON schema of the arguments object."""
        properties: JSON = {}
        definitions: JSON = {}
        for name, hint in self._types.items():
            try:
                (part,), parts = msgspec.json.schema_components([hint], ref_template="#/$defs/{name}")
            except TypeError:  # a type JSON has no form for: the function converts it itself
                part, parts = {}, {}
            definitions.update(parts)
            more: JSON = {"description": described[name]} if name in described else {}
            if name in self._defaults and isinstance(self._defaults[name], str | int | float | bool):
                more["default"] = self._defaults[name]
            properties[name] = {**part, **more}
        schema: JSON = {"type": "object", "properties": properties, "required": self._required}
        if not self._open:
            schema["additionalProperties"] = False
        if definitions:
            schema["$defs"] = definitions
        return schema

    def convert(self, arguments: JSON) -> JSON:
        """The arguments as the hints want them; `ToolError` says what is wrong."""
        problems = [f"missing argument {name!r}" for name in self._required if name not in arguments]
        values: JSON = {}
        for name, value in arguments.items():
            hint = self._types.get(name, None if self._open else _UNKNOWN)
            if hint is _UNKNOWN:
                problems.append(f"unknown argument {name!r} (there are: {', '.join(self._types) or 'none'})")
                continue
            try:
                values[name] = (
                    value if hint is None or hint is Any else msgspec.convert(value, hint, strict=False)
                )
            except msgspec.ValidationError as error:
                problems.append(f"argument {name!r}: {error}")
            except TypeError:  # no JSON type (see `schema`)
                values[name] = value
        if problems:
            raise ToolError("; ".join(problems))
        return values

    async def run(self, arguments: JSON, context: ToolContext) -> ToolResult:
        """Call the function."""
        with capturing(progress=context.progress) as capture:
            try:
                values = self.convert(arguments)
                if self._context:
                    values[self._context] = context
                if inspect.iscoroutinefunction(self._function):
                    value = await self._function(**values)
                else:
                    value = await asyncio.to_thread(self._function, **values)
                    if inspect.isawaitable(value):
                        value = await value
                if isinstance(value, ToolResult):
                    return value
                printed = capture.output
                text = value_text(value)
                return ToolResult(
                    f"{printed.rstrip()}\n{text}" if printed.strip() else text, display=value_bundle(value)
                )
            except ToolError as error:
                return ToolResult(str(error), error=str(error))
            except Exception as error:
                return ToolResult(_told(error, capture.output), error=_short(error))


_UNKNOWN: Any = object()


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _told(error: Exception, printed: str) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    own = [
        frame
        for frame in frames
        if not frame.filename.endswith(("/asyncio/threads.py", "/concurrent/futures/thread.py"))
    ]
    lines = traceback.format_list(own[-8:]) + traceback.format_exception_only(error)
    text = cap("Traceback (most recent call last):\n" + "".join(lines).rstrip(), TRACEBACK_LIMIT)
    return f"{printed.rstrip()}\n{text}" if printed.strip() else text


_SECTION = re.compile(
    r"^(Parameters|Args|Arguments|Returns?|Raises|Yields?|Examples?|Notes?|Attributes|See Also)\s*:?\s*$"
)
_GOOGLE = re.compile(r"^\s+(\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(.+)$")
_NUMPY = re.compile(r"^(\*{0,2}\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")


def read_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """The text before the first section, and what is said of each parameter."""
    text: list[str] = []
    described: dict[str, str] = {}
    section = ""
    names: list[str] = []
    for line in doc.splitlines():
        if match := _SECTION.match(line):
            section, names = match[1], []
        elif section in ("Parameters", "Args", "Arguments"):
            if set(line.strip()) == {"-"}:
                continue
            if (match := _GOOGLE.match(line)) and section != "Parameters":
                names = [match[1].lstrip("*")]
                described[names[0]] = match[2].strip()
            elif (match := _NUMPY.match(line)) and not line[:1].isspace():
                names = [name.strip().lstrip("*") for name in match[1].split(",")]
            elif line.strip():
                for name in names:
                    described[name] = f"{described.get(name, '')} {line.strip()}".strip()
        elif not section:
            text.append(line)
    return "\n".join(text).strip(), described
