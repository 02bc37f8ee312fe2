"""Nodes: typed functions from struct to struct, whose annotations are their conditions.

The first parameter is what a node takes, the return type what it makes; keyword-only parameters are
roles (by type: `Model`, `Judge`) or settings (with a default, checked against their annotation).
Everything is read from the signature (`signature.py`), so there is nothing to keep in step with it;
what the signature cannot say (name, attempts, weight, tags) stands beside it. An object that is
called like such a function is a node too, with what it holds as its state. A sync function runs in
a thread, at about a tenth of a millisecond a call, so that it holds up no other walk.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from dataforge.errors import ContradictoryCondition, DeclarationError
from dataforge.plan.action import Action, digest_of, names_of, told
from dataforge.plan.shape import Conditions
from dataforge.plan.signature import (
    PLACED,
    Signature,
    awaitable,
    own_name,
    place,
    source_text,
    state_text,
)
from dataforge.plan.stable import stable
from dataforge.plan.struct import Struct, conditions, narrowed, narrowed_struct, struct_of

__all__ = ["DECLARED", "Declare", "Declared", "Node", "gate", "node"]

DECLARED = "__dataforge_declared__"
"""The global of a module in whose list, where a loader put one, `node()` notes what it declares."""

In = TypeVar("In", bound=Struct)
Out = TypeVar("Out", bound=Struct)
P = ParamSpec("P")


@dataclass(frozen=True, eq=False, slots=True)
class Declared:
    """One call of `node()`; every node made of its result, by another name say, shares it."""

    name: str
    line: int


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
    promises: Conditions = field(default_factory=dict)
    """Narrower postconditions than those of `makes`, by field."""
    source: str = ""
    """The text that decides what it does; its file's text where not given."""
    state: str = ""
    """What the object that runs holds, as text."""
    declared: Declared | None = None
    """The call of `node()` it comes of, if any."""

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "preconditions", conditions(self.takes))
        promised = MappingProxyType({**conditions(self.makes), **self.promises})
        set_field(self, "postconditions", promised)
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
        """Hash of name, conditions, settings, how it is tried and judged, state and source text."""
        settings = stable(dict(self.settings), f"{self.name}: its settings")
        manner = f"{self.attempts} {self.weight} {self.judges} {sorted(self.roles.items())}"
        needs, gives = told(self.preconditions), told(self.postconditions)
        source = self.source or source_text(self.run)
        return digest_of(self.name, needs, gives, settings, manner, self.state, source)


class Declare(Protocol):
    """What `@node(...)` gives: makes a function a node."""

    @overload
    def __call__(self, run: Callable[Concatenate[In, P], Awaitable[Out]], /) -> Node[In, Out]: ...
    @overload
    def __call__(self, run: Callable[Concatenate[In, P], Out], /) -> Node[In, Out]: ...


@overload
def node(
    run: Callable[Concatenate[In, P], Awaitable[Out]],
    /,
    *,
    name: str | None = ...,
    attempts: int = ...,
    weight: float = ...,
    tags: Iterable[str] = ...,
    judges: str | None = ...,
    needs: Mapping[str, object] = ...,
    promises: Mapping[str, object] = ...,
) -> Node[In, Out]: ...
@overload
def node(
    run: Callable[Concatenate[In, P], Out],
    /,
    *,
    name: str | None = ...,
    attempts: int = ...,
    weight: float = ...,
    tags: Iterable[str] = ...,
    judges: str | None = ...,
    needs: Mapping[str, object] = ...,
    promises: Mapping[str, object] = ...,
) -> Node[In, Out]: ...
@overload
def node(
    *,
    name: str | None = ...,
    attempts: int = ...,
    weight: float = ...,
    tags: Iterable[str] = ...,
    judges: str | None = ...,
    needs: Mapping[str, object] = ...,
    promises: Mapping[str, object] = ...,
) -> Declare: ...


def node(
    run: Callable[..., object] | None = None,
    /,
    *,
    name: str | None = None,
    attempts: int = 1,
    weight: float = 1.0,
    tags: Iterable[str] = (),
    judges: str | None = None,
    needs: Mapping[str, object] = MappingProxyType({}),
    promises: Mapping[str, object] = MappingProxyType({}),
) -> Node[Any, Any] | Declare:
    """Makes a function, or an object that is called like one, a node.

    `name`: the function's own where not given; `attempts`: how often it is tried in all; `weight`:
    > 0, how likely it is chosen; `judges`: the field that its judge judges, due where it has one;
    `needs`, `promises`: field -> the literal, or list of literals, that this node of a family needs
    or promises where the struct allows more. Raises `DeclarationError` with file and line for what
    cannot be read.
    """
    caller = sys._getframe(1)

    def declare(run: Callable[..., object]) -> Node[Any, Any]:
        signature = Signature.read(run, caller.f_locals)
        called = own_name(run) if name is None else name
        judging = sorted(role for role, kind in signature.roles.items() if kind == "judge")
        if judging and judges is None:
            # Without it nobody could tell whose output the judge must share no weights with.
            raise DeclarationError(
                f"{judging[0]!r} is a judge: say which field it judges, as in "
                '@node(judges="answer")'
            )
        return Node(
            name=called,
            takes=narrowed_struct(signature.takes, needs),
            makes=signature.makes,
            run=awaitable(run),
            roles=MappingProxyType(signature.roles),
            settings=signature.settings,
            setting_types=signature.setting_types,
            attempts=attempts,
            weight=weight,
            tags=names_of("tags", tags),
            judges=judges,
            promises=narrowed(signature.makes, promises),
            state=state_text(run),
            declared=Declared(called, caller.f_lineno),
        )

    def located(run: Callable[..., object]) -> Node[Any, Any]:
        try:
            made = declare(run)
        except (DeclarationError, ContradictoryCondition) as error:
            if PLACED.match(str(error)):
                raise
            where = place(run, caller.f_code.co_filename, caller.f_lineno)
            said = str(error).removeprefix(f"{name or getattr(run, '__name__', '')}: ")
            raise type(error)(f"{where}: {said}") from None
        noted = caller.f_globals.get(DECLARED)
        if isinstance(noted, list):
            noted.append(made.declared)
        return made

    return located if run is None else located(run)


class Nothing(Struct):
    """What a gate makes."""


def gate(name: str, conditions: Conditions) -> Node[Struct, Nothing]:
    """A node that only demands: its preconditions are `conditions`, and it has no effect."""

    async def passed(taken: Struct) -> Nothing:
        return Nothing()

    takes = struct_of(name, conditions)
    return Node(name=name, takes=takes, makes=Nothing, run=passed, source="gate")
