"""The words of a picture: what stands in a node's box, beside it, and above the whole.

Widths are estimates, since fonts differ from machine to machine; they err on the wide side. What is
too long for a box is cut there and is whole in the tooltip.
"""

from __future__ import annotations

from unicodedata import combining, east_asian_width

from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.loop import Loop
from dataforge.plan.shape import Conditions, say

__all__ = ["cells", "inside", "kind", "lines", "met", "short", "summary", "told"]

_TITLE, _DETAIL = 34, 46
"""Most cells of a box's first line, and of those below it."""


def short(action: Action) -> str:
    """The name without its family, which stands on the frame."""
    return action.name.partition("/")[2] or action.name


def kind(action: Action) -> str:
    """`node`, `loop` or `graph`."""
    if isinstance(action, Loop):
        return "loop"
    return "graph" if isinstance(action, Graph) else "node"


def lines(action: Action) -> tuple[str, ...]:
    """What stands in the box: the short name, then what is inside, each cut to fit."""
    details = (_cut(line, _DETAIL) for line in inside(action))
    return (_cut(short(action), _TITLE), *details)


def inside(action: Action) -> list[str]:
    """What a loop or a nested graph holds, in a line or two; none of a node."""
    if isinstance(action, Loop):
        steps = " → ".join(step.name for step in action.steps)
        times = "once" if action.at_most == 1 else f"at most {action.at_most} times"
        return [steps, f"{times}, until {met(action.until)}"]
    if isinstance(action, Graph):
        walks = _counted(action.count_walks(), "walk")
        return [f"graph of {_counted(len(action.nodes), 'node')}, {walks}"]
    return []


def met(conditions: Conditions) -> str:
    """Conditions as one phrase."""
    return " and ".join(f"{name} is {say(shape)}" for name, shape in conditions.items())


def told(action: Action) -> str:
    """What a node needs and gives, a line each, after its name."""
    needs = [f"needs {name}: {say(shape)}" for name, shape in action.preconditions.items()]
    gives = [f"gives {name}: {say(shape)}" for name, shape in action.postconditions.items()]
    return "\n".join([action.name, *needs, *gives])


def summary(graph: Graph) -> str:
    """How large a graph is, and how many walks of what length it has."""
    shortest, longest = graph.shortest(), graph.longest()
    long = str(longest) if shortest == longest else f"{shortest} to {longest}"
    sizes = f"{_counted(len(graph.nodes), 'node')}, {_counted(len(graph.edges()), 'edge')}"
    nodes = "node" if longest == 1 else "nodes"
    return f"{sizes}, {_counted(graph.count_walks(), 'walk')} of {long} {nodes}"


def cells(text: str) -> int:
    """How wide a text is, in letters: East Asian ones take two, combining ones none."""
    return sum(
        0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text
    )


def _cut(text: str, most: int) -> str:
    if cells(text) <= most:
        return text
    while cells(text) >= most:
        text = text[:-1]
    return f"{text}…"


def _counted(count: int, what: str) -> str:
    digits = f"{count:,}" if count < 10**12 else f"about 10^{len(str(count)) - 1}"
    return f"{digits} {what}{'' if count == 1 else 's'}"
