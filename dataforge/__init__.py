"""DataForge: declarative graphs of typed nodes that turn passages into a judged corpus.

What a node file needs to import is here; everything else is imported from where it stands. A name
is loaded when it is first asked for, so that `dataforge --help` waits for none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataforge.errors import Unmet
    from dataforge.models.base import Message, Model, Params, Reply, TokenLogprob, ToolCall
    from dataforge.models.judge import Case, Judge, Rubric
    from dataforge.plan.graph import Graph
    from dataforge.plan.loop import loop
    from dataforge.plan.node import Node, gate, node
    from dataforge.plan.struct import Absent, Struct
    from dataforge.verifiers.verdict import Verdict

__all__ = [
    "Absent",
    "Case",
    "Graph",
    "Judge",
    "Message",
    "Model",
    "Node",
    "Params",
    "Reply",
    "Rubric",
    "Struct",
    "TokenLogprob",
    "ToolCall",
    "Unmet",
    "Verdict",
    "gate",
    "loop",
    "node",
]

_HOME = {
    "Absent": "dataforge.plan.struct",
    "Case": "dataforge.models.judge",
    "Graph": "dataforge.plan.graph",
    "Judge": "dataforge.models.judge",
    "Message": "dataforge.models.base",
    "Model": "dataforge.models.base",
    "Node": "dataforge.plan.node",
    "Params": "dataforge.models.base",
    "Reply": "dataforge.models.base",
    "Rubric": "dataforge.models.judge",
    "Struct": "dataforge.plan.struct",
    "TokenLogprob": "dataforge.models.base",
    "ToolCall": "dataforge.models.base",
    "Unmet": "dataforge.errors",
    "Verdict": "dataforge.verifiers.verdict",
    "gate": "dataforge.plan.node",
    "loop": "dataforge.plan.loop",
    "node": "dataforge.plan.node",
}
"""Name -> the module it stands in."""


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
