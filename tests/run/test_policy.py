"""Each walk policy gives the distribution it promises, and a run keeps to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from dataforge.corpus.store import read_samples
from dataforge.errors import RunMismatch
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.node import gate
from dataforge.plan.route import Route, names
from dataforge.run.policy import POLICIES, Policy, policy
from dataforge.run.sampling import Draws
from tests.plan.scene import TEXT, acts, one_of
from tests.run.scene import GRAPH, order, run

Walk = tuple[str, ...]


def lopsided(weight: float = 1.0) -> Graph:
    """Two ways at first, of which one opens three more; and one node may join in."""
    actions: list[Action] = [
        gate("go", {"t": TEXT}),
        acts("narrow", {"t": TEXT}, {"kind": one_of("n")}, weight=weight),
        acts("wide", {"t": TEXT}, {"kind": one_of("w")}),
        *(acts(f"wide/{n}", {"kind": one_of("w")}, {"q": TEXT}) for n in range(3)),
        acts("only", {"kind": one_of("n")}, {"q": TEXT}),
        acts("aside", {"kind": one_of("w")}, {"note": TEXT}),
        acts("end", {"q": TEXT}, {"done": TEXT}),
    ]
    return Graph.build("lopsided", actions, "go", "end")


def nested() -> Graph:
    """The same graph as one of two ways through another."""
    plain = acts("plain", {"t": TEXT}, {"q": TEXT})
    last = acts("last", {"q": TEXT}, {"over": TEXT})
    return Graph.build("nested", [gate("in", {"t": TEXT}), lopsided(), plain, last], "in", "last")


def probabilities(graph: Graph) -> dict[Walk, float]:
    """Walk -> how likely it is when every step is drawn by weight, worked out by enumeration."""
    found: dict[Walk, float] = {}
    waiting: list[tuple[Walk, float, object]] = [((), 1.0, graph.start)]
    while waiting:
        path, chance, state = waiting.pop()
        choices = graph.choices(state)  # type: ignore[arg-type]
        if not choices:
            found[path] = chance
        weights = sum(action.weight for action, _ in choices)
        for action, reached in choices:
            waiting.append(((*path, action.name), chance * action.weight / weights, reached))
    return found


def chi_square(tally: Mapping[Walk, int], expected: Mapping[Walk, float]) -> float:
    count = sum(tally.values())
    return sum((tally[walk] - count * p) ** 2 / (count * p) for walk, p in expected.items())


def critical(freedom: int) -> float:
    """The 99.99th percentile of chi-square, by Wilson and Hilferty's cube (1931)."""
    part = 2 / (9 * freedom)
    return freedom * float(1 - part + 3.719 * part**0.5) ** 3


def drawn(graph: Graph, by: Policy, count: int) -> Counter[Walk]:
    routes = policy(by, graph)
    return Counter(tuple(names(routes(Draws(3, "seed", at), at))) for at in range(count))


@pytest.mark.parametrize("weight", [1.0, 5.0])
def test_uniform_draws_each_step_by_weight(weight: float) -> None:
    graph = lopsided(weight)
    expected = probabilities(graph)
    tally = drawn(graph, "uniform", 20_000)
    assert set(tally) == set(expected)
    assert chi_square(tally, expected) < critical(len(expected) - 1)


@pytest.mark.parametrize("graph", [lopsided(), lopsided(5.0), nested()], ids=lambda g: str(g.name))
def test_paths_draws_every_whole_walk_alike_whatever_the_weights(graph: Graph) -> None:
    expected = 1 / graph.count_walks()
    tally = drawn(graph, "paths", 20_000)
    assert len(tally) == graph.count_walks()
    even = dict.fromkeys(tally, expected)
    assert chi_square(tally, even) < critical(len(tally) - 1)


def test_the_two_can_be_told_apart() -> None:
    graph = lopsided()
    even = dict.fromkeys(probabilities(graph), 1 / graph.count_walks())
    assert chi_square(drawn(graph, "uniform", 20_000), even) > critical(len(even) - 1)


def test_walks_past_any_float_are_drawn_evenly() -> None:
    actions: list[Action] = [gate("go", {"t0": TEXT})]
    for stage in range(90):
        needs = {f"t{stage}": TEXT}
        actions += [acts(f"s{stage}/{n}", needs, {f"t{stage + 1}": TEXT}) for n in range(6)]
    actions.append(acts("end", {"t90": TEXT}, {"done": TEXT}))
    graph = Graph.build("long", actions, "go", "end")
    assert graph.count_walks() == 6**90 > 2**200
    tallies = [Counter[Walk](), Counter[Walk](), Counter[Walk]()]
    routes = policy("paths", graph)
    for at in range(6_000):
        walk = tuple(names(routes(Draws(3, "seed", at), at)))
        for tally, stage in zip(tallies, (1, 45, 90), strict=True):
            tally[walk[stage : stage + 1]] += 1
    for tally in tallies:
        assert len(tally) == 6
        assert chi_square(tally, dict.fromkeys(tally, 1 / 6)) < critical(5)


def test_cover_visits_every_edge_and_does_not_depend_on_which_walks_are_left_to_make() -> None:
    graph = lopsided()
    edges = {(edge.before, edge.after) for edge in graph.edges()}
    routes = policy("cover", graph)
    whole: list[Route] = [routes(Draws(0, "seed", at), at) for at in range(len(edges))]
    assert {pair for route in whole for pair in pairwise(names(route))} == edges
    again = policy("cover", graph)
    assert again(Draws(1, "other", 9), len(edges) - 1) == whole[-1]


@pytest.mark.parametrize("by", POLICIES)
async def test_a_run_by_any_policy_is_the_same_at_any_concurrency_and_continued(
    tmp_path: Path, by: Policy
) -> None:
    asked = replace(order(24), policy=by)
    await run(replace(asked, concurrency=1), tmp_path / "one")
    await run(replace(asked, concurrency=16), tmp_path / "many")
    await run(replace(asked, walks=7), tmp_path / "parts")
    await run(asked, tmp_path / "parts")
    tables = [(tmp_path / each / "corpus.parquet").read_bytes() for each in ("one", "many")]
    assert tables[0] == tables[1]
    parts = list(read_samples(tmp_path / "parts" / "corpus.parquet"))
    assert parts == list(read_samples(tmp_path / "one" / "corpus.parquet"))


async def test_cover_spreads_a_run_over_the_transformations(tmp_path: Path) -> None:
    await run(replace(order(24), policy="cover"), tmp_path)
    lines = (tmp_path / "walks.jsonl").read_text().splitlines()
    assert sum('"transform/rap"' in line for line in lines) == 12


async def test_a_run_begun_by_one_policy_is_not_continued_by_another(tmp_path: Path) -> None:
    await run(order(2), tmp_path)
    with pytest.raises(RunMismatch, match="policy: was uniform, now paths"):
        await run(replace(order(2), policy="paths"), tmp_path)


def test_the_scene_has_more_than_one_walk() -> None:
    assert GRAPH.count_walks() > 1
