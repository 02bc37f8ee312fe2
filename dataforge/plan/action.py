"""Actions: what can be a step of a walk. A node is one, and so are a loop and a whole graph.

An action is known to the plan only by its conditions. What it does when run is its own subclass's
business; an action in itself cannot be run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from types import MappingProxyType
from typing import Self

from dataforge.errors import DeclarationError
from dataforge.plan.shape import Conditions, Known, say

__all__ = ["Action", "digest_of", "leaves", "merged_roles", "names_of", "told"]

_PATTERN_SIGNS = "*?[:"


@dataclass(frozen=True, eq=False, kw_only=True)
class Action:
    """One possible step: what it needs, and what is different afterwards."""

    name: str
    """Unique within a graph; the part before the first `/` is its family."""
    preconditions: Conditions
    """What must be known before; None: the field must be absent."""
    postconditions: Conditions
    """What is promised after; None: the field is dropped. All other fields stay as they were."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Role name -> kind, `model` or `judge`."""
    weight: float = 1.0
    """> 0: how likely this step is chosen, relative to the others open at the same state."""
    tags: frozenset[str] = frozenset()
    """For patterns such as `tag:NAME`."""
    judges: str | None = None
    """The field this action judges; None for all that are no judge."""

    def __post_init__(self) -> None:
        _refuse_name(self.name)
        # Far from where the sum of all weights could overflow.
        if not (0 < self.weight <= 1e100):
            raise DeclarationError(f"{self.name}: weight is {self.weight}, not > 0 and <= 1e100")
        if self.judges is not None and not self.preconditions.get(self.judges):
            raise DeclarationError(
                f"{self.name}: judges {self.judges!r}, which is not among its preconditions "
                f"({', '.join(self.preconditions) or 'none'})"
            )

    @cached_property
    def requires(self) -> Conditions:
        """The preconditions, and that what it newly writes is not there yet.

        So nothing is overwritten silently, two writers of a field exclude each other, and no walk
        can loop.
        """
        fresh = {name: None for name, shape in self.postconditions.items() if shape is not None}
        return MappingProxyType({**fresh, **self.preconditions})

    def after(self, known: Known) -> Known:
        """What is known once this action has run on what is `known`."""
        kept = {name: shape for name, shape in known.items() if name not in self.postconditions}
        given = {name: shape for name, shape in self.postconditions.items() if shape is not None}
        return kept | given

    @property
    def inner(self) -> tuple[Action, ...]:
        """The actions directly inside; none in a node."""
        return ()

    @property
    def ways(self) -> int:
        """How many ways there are through it; one through a node."""
        return 1

    @property
    def digest(self) -> str:
        """Hash of all that decides what the action does; changes when that may have changed."""
        raise NotImplementedError

    @property
    def family(self) -> str:
        """The name up to the first `/`."""
        return self.name.partition("/")[0]

    def renamed(self, name: str) -> Self:
        """The same action under another name."""
        return replace(self, name=name)

    def weighted(self, weight: float) -> Self:
        """The same action with another weight."""
        return replace(self, weight=weight)


def _refuse_name(name: str) -> None:
    """Refuses a name that an entry of a graph's `nodes` could not mean outright."""
    if not name:
        raise DeclarationError("a node needs a name")
    odd = sorted({sign for sign in name if sign in _PATTERN_SIGNS or not sign.isprintable()})
    if odd or name != name.strip():
        said = f"it holds {' and '.join(map(repr, odd))}" if odd else "a space stands at its end"
        raise DeclarationError(
            f"{name!r} is no name for a node: {said}; a name is of letters, digits, spaces "
            f"within and signs other than {' '.join(_PATTERN_SIGNS)}, which patterns and tags use"
        )


def names_of(what: str, given: Iterable[str]) -> frozenset[str]:
    """Names as a set; `DeclarationError` for a text, which would be taken for its letters."""
    if isinstance(given, str):
        raise DeclarationError(f"{what} is the text {given!r}; write a list of them: [{given!r}]")
    return frozenset(given)


def leaves(action: Action) -> Iterator[Action]:
    """The nodes inside an action at any depth, each as often as it is used; a node is its own."""
    if not action.inner:
        yield action
    for step in action.inner:
        yield from leaves(step)


def merged_roles(name: str, actions: tuple[Action, ...]) -> Mapping[str, str]:
    """The roles of all `actions`; raises `DeclarationError` where one name is of two kinds."""
    roles: dict[str, str] = {}
    holders: dict[str, str] = {}
    for action in actions:
        for role, kind in action.roles.items():
            if roles.setdefault(role, kind) != kind:
                raise DeclarationError(
                    f"{name}: role {role!r} is a {roles[role]} in {holders[role]} and a {kind} in "
                    f"{action.name}; give one of them another name"
                )
            holders.setdefault(role, action.name)
    return MappingProxyType(dict(sorted(roles.items())))


def digest_of(*parts: str) -> str:
    """A hash of texts, in hex; no two lists of texts share one by running together."""
    hashed = blake2b(digest_size=16)
    for part in parts:
        hashed.update(f"{len(part)}:{part}".encode())
    return hashed.hexdigest()


def told(conditions: Conditions) -> str:
    """Conditions as text that is the same on every machine."""
    return "\n".join(f"{name}: {say(shape)}" for name, shape in sorted(conditions.items()))
