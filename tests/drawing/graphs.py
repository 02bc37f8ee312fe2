"""The graphs that the tests draw: a small one with everything in it, a nested one, large ones."""

from __future__ import annotations

from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.loop import Loop, loop
from dataforge.plan.node import gate
from dataforge.plan.shape import Shape
from tests.plan.scene import TEXT, acts, one_of

HOSTILE = "ask/</script><b>&amp; \"'$title"


def tried() -> Loop:
    """An answer, judged, at most three times."""
    answer = acts("answer/plain", {"question": TEXT}, {"answer": TEXT}, roles={"writer": "model"})
    judge = acts("judge/fair", {"answer": TEXT}, {"verdict": one_of("pass", "fail")})
    until = {"verdict": one_of("pass")}
    return loop("tried/plain", [answer, judge], until=until, at_most=3)


def small() -> Graph:
    """A loop, a carried edge, a name that is markup, and a node on no walk."""
    actions: list[Action] = [
        gate("seed/gate", {"passage": TEXT}),
        acts(HOSTILE, {"passage": TEXT}, {"question": TEXT}),
        acts("ask/plain", {"passage": TEXT}, {"question": TEXT}),
        tried(),
        acts("end", {"question": TEXT, "answer": TEXT}, {"messages": Shape(list)}),
        acts("ask/idle", {"mood": TEXT}, {"question": TEXT}),
    ]
    return Graph.build("a <picture>", actions, "seed/gate", "end")


def nested() -> Graph:
    """A loop in a graph in a graph, which stands there twice."""
    inner = Graph.build(
        "inner",
        [
            gate("gate", {"passage": TEXT}),
            acts("ask", {"passage": TEXT}, {"question": TEXT}),
            tried(),
            acts("end", {"answer": TEXT}, {"chat": TEXT}),
        ],
        "gate",
        "end",
    )
    return Graph.build(
        "outer",
        [
            gate("go", {"passage": TEXT}),
            inner.renamed("inside/one"),
            inner.renamed("inside/two"),
            acts("stop", {"chat": TEXT}, {"messages": TEXT}),
        ],
        "go",
        "stop",
    )


def layered(stages: int, width: int, families: int) -> Graph:
    """Every node of a stage follows every node of the one before."""
    actions: list[Action] = [gate("seed/gate", {"f0": TEXT})]
    for stage in range(1, stages + 1):
        for number in range(width):
            family = "abcdefgh"[number % families]
            name = f"{family}/stage {stage} node {number}"
            actions.append(acts(name, {f"f{stage - 1}": TEXT}, {f"f{stage}": TEXT}))
    actions.append(acts("end/chat", {f"f{stages}": TEXT}, {"messages": TEXT}))
    return Graph.build("layered", actions, "seed/gate", "end/chat")
