"""DataForge: declarative graphs of typed nodes that turn passages into a judged corpus.

What a node file needs to import is here; everything else is imported from where it stands.
"""

from __future__ import annotations

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
