"""Which role judges the output of which: what the weights rule is checked on.

It looks through loops and nested graphs by field name, and through nodes without a model by what
they read, so it may pair a judge with a writer whose output never reaches it; it never misses one.
"""

from __future__ import annotations

from collections.abc import Sequence

from dataforge.plan.action import Action, leaves

__all__ = ["judged_roles"]


def judged_roles(action: Action) -> frozenset[tuple[str, str]]:
    """Pairs (judge role, judged role): the first judges what the second's model wrote."""
    nodes = list(leaves(action))
    return frozenset(
        (judging, writing)
        for judge in nodes
        if judge.judges is not None
        for judging in judge.roles
        for writing in _writers(judge.judges, [node for node in nodes if node is not judge])
    )


def _writers(field: str, nodes: Sequence[Action]) -> frozenset[str]:
    """The model roles that a field's words may come from, through nodes that only rework them."""
    roles: set[str] = set()
    seen: set[str] = set()
    traced = [field]
    while traced:
        field = traced.pop()
        if field in seen:
            continue
        seen.add(field)
        for node in nodes:
            if node.postconditions.get(field) is None:
                continue
            models = {role for role, kind in node.roles.items() if kind == "model"}
            roles |= models
            if not models:
                traced += [read for read, shape in node.preconditions.items() if shape is not None]
    return frozenset(roles)
