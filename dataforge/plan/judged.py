"""Which role judges the output of which: what the weights rule is checked on.

It looks through loops and nested graphs by field name, so it may pair a judge with a writer whose
output never reaches it; it never misses a pair.
"""

from __future__ import annotations

from dataforge.plan.action import Action, leaves

__all__ = ["judged_roles"]


def judged_roles(action: Action) -> frozenset[tuple[str, str]]:
    """Pairs (judge role, judged role): the first judges a field that the second's model writes."""
    nodes = list(leaves(action))
    return frozenset(
        (judging, writing)
        for judge in nodes
        if judge.judges is not None
        for writer in nodes
        if writer is not judge and writer.postconditions.get(judge.judges) is not None
        for judging in judge.roles
        for writing, kind in writer.roles.items()
        if kind == "model"
    )
