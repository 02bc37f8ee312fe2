"""Reads what a node function's signature says, and where the function stands.

A function, a method, or an object whose class has `__call__`; nothing that hides its annotations
(a partial) or gives more than one result (a generator). It says nothing of conditions: those are
the structs' own.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

from dataforge.errors import DeclarationError
from dataforge.plan.stable import held, stable
from dataforge.plan.struct import Struct

__all__ = [
    "PLACED",
    "ROLE",
    "Signature",
    "awaitable",
    "own_name",
    "place",
    "source_text",
    "state_text",
]

ROLE = "__dataforge_role__"
"""The attribute by which a type says that a parameter of it is a role, and of which kind."""
PLACED = re.compile(r"[^\n:]+\.py:\d+: ")
"""What an error begins with that says its own file and line."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a node function's signature says."""

    takes: type[Struct]
    makes: type[Struct]
    roles: dict[str, str]
    settings: dict[str, object]
    setting_types: dict[str, object]

    @classmethod
    def read(cls, run: Callable[..., object], names: Mapping[str, object]) -> Signature:
        """`names`: those in sight where the node is declared, for annotations written as text."""
        function = _function(run)
        hints = _hints(function, names)
        parameters = list(inspect.signature(run).parameters.values())
        if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
            raise DeclarationError("its first parameter must be the Struct it takes")
        first, *others = parameters
        roles: dict[str, str] = {}
        settings: dict[str, object] = {}
        for each in others:
            kind = getattr(hints.get(each.name), ROLE, None)
            if each.kind is not inspect.Parameter.KEYWORD_ONLY:
                raise DeclarationError(f"{each.name!r} must be keyword-only; put `*,` before it")
            if each.name not in hints:
                raise DeclarationError(f"{each.name!r} needs an annotation")
            if isinstance(kind, str):
                roles[each.name] = kind
            elif each.default is inspect.Parameter.empty:
                raise DeclarationError(
                    f"{each.name!r} needs a default, as every setting does; annotate it as Model "
                    "or Judge to make it a role"
                )
            else:
                settings[each.name] = each.default
        if roles and not inspect.iscoroutinefunction(function):
            raise DeclarationError(
                f"{min(roles)!r} can only be asked by an async function; write `async def`"
            )
        takes = _struct(hints, first.name, f"the first parameter, {first.name!r},")
        types = {name: hints[name] for name in settings}
        return cls(takes, _struct(hints, "return", "the return type"), roles, settings, types)


def _function(run: Callable[..., object]) -> Callable[..., object]:
    """The function in which annotations and code stand."""
    if isinstance(run, (FunctionType, MethodType)):
        function: Callable[..., object] = run
    elif isinstance(call := getattr(type(run), "__call__", None), FunctionType):  # noqa: B004
        function = call
    else:
        raise DeclarationError(
            f"a {type(run).__name__} does not show what it takes and makes; write a function, or a "
            "class with __call__"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError("a node returns one Struct; it cannot yield")
    inner = inspect.unwrap(function)
    if inspect.iscoroutinefunction(inner) and not inspect.iscoroutinefunction(function):
        raise DeclarationError(
            "its decorator makes a plain function of an async one; write the decorator's own "
            "function as `async def` too"
        )
    return function


def _hints(function: Callable[..., object], names: Mapping[str, object]) -> dict[str, object]:
    try:
        return typing.get_type_hints(function, localns=dict(names), include_extras=True)
    except NameError as error:
        raise DeclarationError(
            f"the name {error.name!r} in an annotation does not resolve; define or import it at "
            "run time, not under TYPE_CHECKING"
        ) from None
    except (AttributeError, TypeError) as error:
        raise DeclarationError(f"an annotation does not resolve: {error}") from None


def _struct(hints: Mapping[str, object], name: str, what: str) -> type[Struct]:
    found = hints.get(name)
    if isinstance(found, type) and issubclass(found, Struct):
        return found
    said = "has no annotation" if name not in hints else f"is {found!r}"
    raise DeclarationError(f"{what} {said}; it must be a subclass of Struct")


def awaitable(run: Callable[..., object]) -> Callable[..., Awaitable[Any]]:
    """`run` itself where it is async; else what runs it in a thread, its context kept."""
    if inspect.iscoroutinefunction(_function(run)):
        return typing.cast("Callable[..., Awaitable[Any]]", run)

    async def in_thread(taken: Struct, **given: object) -> object:
        # Imported here: to plan with a node needs no event loop.
        import asyncio

        def called() -> object:
            try:
                return run(taken, **given)
            except StopIteration as error:
                # No future can carry one, and the await would never end.
                raise RuntimeError("the node raised StopIteration") from error

        return await asyncio.to_thread(called)

    return functools.update_wrapper(in_thread, run)


def own_name(run: Callable[..., object]) -> str:
    """A function's name; `DeclarationError` for an object, which has none."""
    if isinstance(run, (FunctionType, MethodType)):
        return run.__name__
    raise DeclarationError("an object has no name of its own; write node(…, name='…')")


def state_text(run: Callable[..., object]) -> str:
    """What an object, or the object of a method, holds; empty for a function.

    Raises `DeclarationError` for what has no text that stays the same.
    """
    holder = run.__self__ if isinstance(run, MethodType) else run
    if isinstance(holder, FunctionType):
        return ""
    if isinstance(holder, type):
        return stable(holder, holder.__qualname__)
    kind = type(holder).__qualname__
    return kind + stable(dict(held(holder)), kind)


def place(run: Callable[..., object], file: str, line: int) -> str:
    """File, line and name of a node, for errors; those of the call for an object."""
    if not isinstance(run, (FunctionType, MethodType)):
        return f"{Path(file).name}:{line}: node of a {type(run).__name__}"
    code = _code(run)
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}: node {run.__name__!r}"


def source_text(run: Callable[..., object]) -> str:
    """The text of the file that defines `run`, so that a helper beside it counts too."""
    code = _code(run)
    path = Path(code.co_filename)
    return path.read_text(encoding="utf-8") if path.is_file() else repr(code.co_code)


def _code(run: Callable[..., object]) -> CodeType:
    unwrapped = inspect.unwrap(run)
    function = _function(unwrapped)
    return typing.cast("FunctionType", inspect.unwrap(function)).__code__
