"""Facts as a command line spells them, read as conditions; and conditions spelt as such facts.

FIELD, FIELD=a|b, FIELD>=20 and !FIELD, each in the light of what nodes know of the field: whether
a bound is of a number or a length, and which literals there are. What no fact can say (a pattern,
what the items of a list are) has no spelling here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from math import inf, isfinite

from dataforge.errors import ContradictoryCondition, UsageError
from dataforge.plan.action import Action
from dataforge.plan.bases import below, is_number, is_sized
from dataforge.plan.goal import Assumed, assumed
from dataforge.plan.shape import Conditions, Shape, named

__all__ = ["fields_by_name", "read_facts", "spelt"]

_FACT = re.compile(r"(?P<not>!)?(?P<field>\w+)(?:\s*(?P<sign>>=|<=|=|>|<)\s*(?P<value>.+))?", re.S)
_FORMS = "write FIELD, FIELD=a|b, FIELD>=20 (of a number, or of a length) or !FIELD (absent)"
_TRUTHS = {"true": True, "false": False}


def read_facts(
    option: str, facts: Iterable[str], actions: Sequence[Action], taken: dict[str, Assumed]
) -> Conditions:
    """The conditions that facts of a command line are; two on one field hold both.

    A field given by name alone is what is `taken` of it, or anything. Raises `UsageError` for what
    cannot be.
    """
    found: dict[str, Shape | None] = {}
    for fact in facts:
        field, shape = _condition(option, fact, actions, taken)
        if field in found:
            before = found[field]
            shape = before.meet(shape) if before is not None and shape is not None else None
            if shape is None:
                raise UsageError(f"{option} {fact}: cannot be, with what is said of {field} before")
        found[field] = shape
    return found


def fields_by_name(
    facts: Iterable[str], helping: Sequence[Action], actions: Sequence[Action]
) -> dict[str, Assumed]:
    """Field given by name alone -> what it is taken to be: for the `helping` that read it, or all.

    A field that is said more of stands there too, as what is said holds besides.
    """
    found: dict[str, Assumed] = {}
    for fact in facts:
        field = fact.strip()
        read = any(field in action.preconditions for action in helping)
        taken = assumed(field, helping if read else actions)
        if taken is not None:
            found[field] = taken
    return found


def spelt(field: str, shape: Shape) -> str | None:
    """The shortest facts that say a shape, for a shell; None where no facts do."""
    if shape.values is not None:
        said = "|".join(sorted(_word(value) for value in shape.values))
        return shlex.quote(f"{field}={said}") if shape.base is not bool else field
    facts = []
    if shape.low > -inf:
        facts.append(f"{field}{'>' if shape.low_open else '>='}{shape.low}")
    if shape.high < inf:
        facts.append(f"{field}{'<' if shape.high_open else '<='}{shape.high}")
    if shape.min_len > 0:
        facts.append(f"{field}>={shape.min_len}")
    if shape.max_len < inf:
        facts.append(f"{field}<={shape.max_len}")
    if shape.marks or shape.items is not None or not facts:
        return None
    return " --have ".join(map(shlex.quote, facts))


def _word(value: object) -> str:
    return str(getattr(value, "name", value))


def _condition(
    option: str, fact: str, actions: Sequence[Action], taken: dict[str, Assumed]
) -> tuple[str, Shape | None]:
    parts = _FACT.fullmatch(fact.strip())
    if parts is None or (parts["not"] and parts["sign"]):
        raise UsageError(f"{option} {fact}: cannot be read; {_FORMS}")
    field = parts["field"]
    shapes = [
        shape
        for action in actions
        for shape in (action.preconditions.get(field), action.postconditions.get(field))
        if shape is not None
    ]
    if not shapes:
        fields = sorted({f for a in actions for f in (*a.preconditions, *a.postconditions)})
        near = get_close_matches(field, fields, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else f"; they use {', '.join(fields)}"
        raise UsageError(f"{option} {fact}: no node reads or writes {field!r}{hint}")
    if parts["not"]:
        return field, None
    if parts["sign"] is None:
        return field, taken[field].shape if field in taken else Shape()
    try:
        if parts["sign"] == "=":
            return field, _choice(field, parts["value"], shapes)
        return field, _bound(parts["sign"], parts["value"], shapes)
    except (ValueError, ContradictoryCondition) as error:
        raise UsageError(f"{option} {fact}: {error}") from None


def _choice(field: str, text: str, shapes: Sequence[Shape]) -> Shape:
    """Literals, each of the value the nodes know under that text; else a text or a number."""
    known: dict[str, object] = {
        _word(value): value for shape in shapes for value in shape.values or ()
    }
    if text not in known and text[0] in "=<>":
        rest = text.lstrip("=<> ")
        raise ValueError(
            f"'={text[0]}' is no sign; write {field}={rest}, {field}>={rest} or {field}<={rest}"
        )
    truths = _TRUTHS if any(shape.base is bool for shape in shapes) else {}
    numeric = any(is_number(shape.base) for shape in shapes)
    parts = [part.strip() for part in text.split("|")]
    values: list[object] = []
    for part in parts:
        if part in known:
            values.append(known[part])
        elif part.lower() in truths:
            values.append(truths[part.lower()])
        elif not part:
            rest = "|".join(filter(None, parts)) or "a"
            raise ValueError(
                f"an empty choice beside a '|'; write {field}={rest}, with a '|' only between two"
            )
        elif numeric:
            values.append(_number(part))
        elif any(below(str, shape.base) for shape in shapes):
            values.append(part)
        else:
            kinds = ", ".join(sorted({named(shape.base) for shape in shapes}))
            hint = f"; known are {', '.join(sorted(known))}" if known else ""
            raise ValueError(f"{part!r} cannot be: it is of type {kinds}{hint}")
    return Shape(values=frozenset(values))


def _bound(sign: str, text: str, shapes: Sequence[Shape]) -> Shape:
    """A bound on a number or a length, as the nodes know the field."""
    number = _number(text)
    base = next((s.base for s in shapes if s.base is not object), shapes[0].base)
    if is_number(base):
        if sign[0] == ">":
            return Shape(base, low=number, low_open=sign == ">")
        return Shape(base, high=number, high_open=sign == "<")
    if not is_sized(base):
        raise ValueError(f"{base.__name__} has neither size nor length")
    if not isinstance(number, int):
        raise ValueError("a length is a whole number")
    if sign[0] == ">":
        return Shape(base, min_len=number + (sign == ">"))
    return Shape(base, max_len=number - (sign == "<"))


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if not isfinite(number):
        raise ValueError(f"{text!r} is no finite number")
    return number
