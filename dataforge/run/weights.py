"""The rule that no judge judges the output of its own weights, checked before the first call."""

from __future__ import annotations

from collections.abc import Mapping

from dataforge.errors import SharedWeights
from dataforge.plan.graph import Graph
from dataforge.plan.judged import judged_roles
from dataforge.run.roles import Role

__all__ = ["check_weights"]


def check_weights(graph: Graph, players: Mapping[str, Role], allowed: bool) -> tuple[str, ...]:
    """What is set aside, in words for the record; SharedWeights if it is not `allowed`."""
    shared = [
        (judge, judged)
        for judge, judged in sorted(judged_roles(graph))
        if players[judge].weights == players[judged].weights
    ]
    said = tuple(
        f"shared weights: {judge} judges what {judged} wrote, and both are {players[judge].weights}"
        for judge, judged in shared
    )
    if said and not allowed:
        raise SharedWeights(
            f"{'; '.join(said)}. A model is lenient with its own writing: give another with "
            f"--model {shared[0][0]}=SPEC, or --allow-shared-weights, which the run's record "
            "will say"
        )
    return said
