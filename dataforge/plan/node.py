"""Nodes: typed async functions from struct to struct, whose annotations are their conditions.

The first parameter is what a node takes, the return type what it makes; keyword-only parameters are
roles (by type: `Model`, `Judge`) or settings (with a default, checked against their annotation).
Everything is read from the signature, so there is nothing to keep in step with it; what the
signature cannot say (attempts, weight, tags) stands in the decorator. No sync functions: a node
that blocks would hold up every other walk.
"""

from __future__ import annotations

import difflib
import inspect
import json
import sys
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from dataforge.errors import ContradictoryCondition, DeclarationError
from dataforge.plan.action import Action, digest_of, told
from dataforge.plan.shape import Conditions
from dataforge.plan.struct import Struct, conditions, struct_of

__all__ = ["Node", "gate", "node"]

In = TypeVar("In", bound=Struct)
Out = TypeVar("Out", bound=Struct)
P = ParamSpec("P")

ROLE = "__dataforge_role__"
"""The attribute by which a type says that a parameter of it is a role, and of which kind."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Node(Action, Generic[In, Out]):
    """A node type: what it takes and makes, and the function that does it."""

    preconditions: Conditions = field(init=False)
    """Those of `takes`."""
    postconditions: Conditions = field(init=False)
    """Those of `makes`."""
    takes: type[In]
    """The struct it is called with."""
    makes: type[Out]
    """The struct it returns."""
    run: Callable[..., Awaitable[Out]]
    """`await run(taken, **roles_and_settings)` gives what it makes."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Setting -> value."""
    setting_types: Mapping[str, object] = field(default_factory=dict)
    """Setting -> its annotation; the type of its first value where not given."""
    attempts: int = 1
    """How often a promise it breaks, or `Unmet`, is tried in all."""
    source: str = ""
    """The text that decides what it does; its file's text where not given."""

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "preconditions", conditions(self.takes))
        set_field(self, "postconditions", conditions(self.makes))
        super().__post_init__()
        if self.attempts < 1:
            raise DeclarationError(f"{self.name}: attempts is {self.attempts}; the least is 1")
        types = {name: type(value) for name, value in self.settings.items()}
        set_field(self, "setting_types", MappingProxyType({**types, **self.setting_types}))
        checked = {name: self._checked(name, value) for name, value in self.settings.items()}
        set_field(self, "settings", MappingProxyType(checked))

    async def __call__(self, taken: In, /, **given: object) -> Out:
        """What the node makes of `taken`; `given` are its roles, and settings to override."""
        return await self.run(taken, **{**self.settings, **given})

    def with_settings(self, **values: object) -> Self:
        """The same node with other settings; `DeclarationError` for one unknown or misread."""
        for name in values.keys() - self.settings.keys():
            near = difflib.get_close_matches(name, self.settings, n=1)
            has = ", ".join(self.settings) or "none"
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise DeclarationError(f"{self.name} has no setting {name!r}; it has {has}{hint}")
        return replace(self, settings={**self.settings, **values})

    def _checked(self, name: str, value: object) -> object:
        """A setting's value, as strictly as JSON would be read into its annotation."""
        try:
            annotation: Any = self.setting_types[name]
            adapter: TypeAdapter[object] = TypeAdapter(annotation)
        except PydanticUserError as error:
            problem = str(error).splitlines()[0]
            raise DeclarationError(f"{self.name}: setting {name!r}: {problem}") from None
        try:
            return adapter.validate_python(value, strict=True)
        except ValidationError as error:
            try:
                return adapter.validate_json(json.dumps(value), strict=True)
            except (ValidationError, TypeError, ValueError):
                problem = error.errors(include_url=False)[0]["msg"]
        raise DeclarationError(f"{self.name}: setting {name!r} is {value!r}: {problem}")

    @cached_property
    def digest(self) -> str:
        """Hash of name, conditions, settings, how it is tried and judged, and its source text."""
        settings = json.dumps(
            to_jsonable_python(dict(self.settings), fallback=repr), sort_keys=True
        )
        manner = f"{self.attempts} {self.weight} {self.judges} {sorted(self.roles.items())}"
        needs, gives = told(self.preconditions), told(self.postconditions)
        return digest_of(self.name, needs, gives, settings, manner, self.source or _text(self.run))


@overload
def node(run: Callable[Concatenate[In, P], Awaitable[Out]], /) -> Node[In, Out]: ...


@overload
def node(
    *, attempts: int = ..., weight: float = ..., tags: Iterable[str] = ..., judges: str | None = ...
) -> Callable[[Callable[Concatenate[In, P], Awaitable[Out]]], Node[In, Out]]: ...


def node(
    run: Callable[..., Awaitable[Any]] | None = None,
    /,
    *,
    attempts: int = 1,
    weight: float = 1.0,
    tags: Iterable[str] = (),
    judges: str | None = None,
) -> Node[Any, Any] | Callable[[Callable[..., Awaitable[Any]]], Node[Any, Any]]:
    """Makes an async function a node named after it.

    `attempts`: how often it is tried in all; `weight`: > 0, how likely it is chosen; `judges`: the
    field that its judge judges, due where it has one. Raises `DeclarationError` for a signature
    that cannot be read.
    """
    names = sys._getframe(1).f_locals

    def declare(run: Callable[..., Awaitable[Any]]) -> Node[Any, Any]:
        signature = _Signature.read(run, names)
        judging = sorted(role for role, kind in signature.roles.items() if kind == "judge")
        if judging and judges is None:
            # Without it nobody could tell whose output the judge must share no weights with.
            raise DeclarationError(
                f"{judging[0]!r} is a judge: say which field it judges, as in "
                '@node(judges="answer")'
            )
        return Node(
            name=run.__name__,
            takes=signature.takes,
            makes=signature.makes,
            run=run,
            roles=MappingProxyType(signature.roles),
            settings=signature.settings,
            setting_types=signature.setting_types,
            attempts=attempts,
            weight=weight,
            tags=frozenset(tags),
            judges=judges,
        )

    def located(run: Callable[..., Awaitable[Any]]) -> Node[Any, Any]:
        try:
            return declare(run)
        except (DeclarationError, ContradictoryCondition) as error:
            raise type(error)(f"{_place(run)}: {error}") from None

    return located if run is None else located(run)


@dataclass(frozen=True, slots=True)
class _Signature:
    """What a node function's signature says."""

    takes: type[Struct]
    makes: type[Struct]
    roles: dict[str, str]
    settings: dict[str, object]
    setting_types: dict[str, object]

    @classmethod
    def read(cls, run: Callable[..., object], names: Mapping[str, object]) -> _Signature:
        if not inspect.iscoroutinefunction(run):
            raise DeclarationError("a node is an async function; write `async def`")
        hints = _hints(run, names)
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
        takes = _struct(hints, first.name, f"the first parameter, {first.name!r},")
        types = {name: hints[name] for name in settings}
        return cls(takes, _struct(hints, "return", "the return type"), roles, settings, types)


def _hints(run: Callable[..., object], names: Mapping[str, object]) -> dict[str, object]:
    try:
        return typing.get_type_hints(run, localns=dict(names), include_extras=True)
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


def _place(run: Callable[..., object]) -> str:
    code = inspect.unwrap(run).__code__
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}: node {run.__name__!r}"


def _text(run: Callable[..., object]) -> str:
    """The text of the file that defines `run`, so that a helper beside it counts too."""
    path = Path(inspect.unwrap(run).__code__.co_filename)
    if path.is_file():
        return path.read_text(encoding="utf-8")
    return repr(inspect.unwrap(run).__code__.co_code)


class Nothing(Struct):
    """What a gate makes."""


def gate(name: str, conditions: Conditions) -> Node[Struct, Nothing]:
    """A node that only demands: its preconditions are `conditions`, and it has no effect."""

    async def passed(taken: Struct) -> Nothing:
        return Nothing()

    takes = struct_of(name, conditions)
    return Node(name=name, takes=takes, makes=Nothing, run=passed, source="gate")
