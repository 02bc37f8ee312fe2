"""How fast a graph of a thousand node types is built, counted and walked.

`python benchmarks/graph.py [--quick] [--json FILE]`. The library is made up: eight stages whose
nodes need texts of some length, marks, literals and scores of the stage before, and some of the one
before that; facts come from a fixed stock, so that twice the nodes have no more distinct ones. The
peer explores naively, keeping all that is known at every state, and is stopped at 3,000 states; it
and ours also build a library small enough for both, to compare. The limit of sampling is a walk
drawn in plain Python over ready lists, one random number a step.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from dataforge.plan.action import Action
from dataforge.plan.cover import Cover
from dataforge.plan.graph import Graph
from dataforge.plan.node import Node
from dataforge.plan.shape import Conditions, Known, Shape, missing
from dataforge.plan.space import entry
from dataforge.plan.struct import Struct, struct_of
from dataforge.run.policy import paths, uniform
from dataforge.run.sampling import Draws

STAGES, KINDS = 8, 6
STOCK = 24
"""Different needs, and different promises, that the nodes of a stage are made of."""
CAP = 3_000


@dataclass(frozen=True)
class Mark:
    """An annotation that no shape can read."""

    name: str


CLEAN, CITED = Mark("clean"), Mark("cited")


async def never(taken: Struct) -> Struct:
    raise NotImplementedError


def text(chance: random.Random, share: float) -> Shape:
    """A text of some length, with some of the marks."""
    marks = frozenset(mark for mark in (CLEAN, CITED) if chance.random() < share)
    return Shape(str, min_len=chance.choice([20, 50, 100, 200]), marks=marks)


def kinds(chance: random.Random, count: int) -> Shape:
    return Shape(values=frozenset(chance.sample([f"kind {n}" for n in range(KINDS)], count)))


def needs(chance: random.Random, stage: int) -> Conditions:
    if stage == 0:
        return {"passage": Shape(str, min_len=chance.choice([100, 200, 500]))}
    found: dict[str, Shape | None] = {f"text{stage - 1}": text(chance, 0.15)}
    if chance.random() < 0.7:
        found[f"kind{stage - 1}"] = kinds(chance, 3)
    if chance.random() < 0.3:
        found[f"score{stage - 1}"] = Shape(float, low=chance.choice([0.2, 0.5, 0.8]))
    if stage > 1 and chance.random() < 0.3:
        found[f"kind{stage - 2}"] = kinds(chance, 4)
    return found


def gives(chance: random.Random, stage: int) -> Conditions:
    low = chance.choice([0.0, 0.3, 0.6, 0.9])
    return {
        f"text{stage}": text(chance, 0.6),
        f"kind{stage}": kinds(chance, 1),
        f"score{stage}": Shape(float, low=low, high=1),
    }


def made(name: str, takes: Conditions, makes: Conditions) -> Action:
    return Node(
        name=name,
        takes=struct_of("Needs", takes),
        makes=struct_of("Gives", makes),
        run=never,
        source=name,
    )


def library(count: int, seed: int = 0) -> list[Action]:
    """A source, `count` nodes in stages, and a target."""
    actions = [made("seed/gate", {"passage": Shape(str, min_len=500)}, {})]
    chance = random.Random(seed)
    for stage in range(STAGES):
        asked = [struct_of("Needs", needs(chance, stage)) for _ in range(STOCK)]
        given = [struct_of("Gives", gives(chance, stage)) for _ in range(STOCK)]
        pick = random.Random(stage)
        for number in range(count // STAGES):
            name = f"stage{stage}/node{number}"
            takes, makes = pick.choice(asked), pick.choice(given)
            actions.append(Node(name=name, takes=takes, makes=makes, run=never, source=name))
    actions.append(made("end", {f"text{STAGES - 1}": Shape(str)}, {"done": Shape(str)}))
    return actions


def naive(actions: Sequence[Action]) -> tuple[int, bool]:
    """States found when each is all that is known there; whether that was all of them."""
    source, target = actions[0], actions[-1]
    first = source.after(entry(source.preconditions))
    seen: set[frozenset[tuple[str, Shape]]] = {frozenset(first.items())}
    waiting: list[Known] = [first]
    while waiting:
        known = waiting.pop()
        for action in actions[1:]:
            if action is target or missing(known, action.requires):
                continue
            after = action.after(known)
            key = frozenset(after.items())
            if key not in seen:
                seen.add(key)
                waiting.append(after)
                if len(seen) >= CAP:
                    return len(seen), False
    return len(seen), True


def counted(actions: Sequence[Action]) -> Graph:
    """The graph, built, checked and its walks counted."""
    graph = Graph.build("layered", actions, "seed/gate", "end")
    graph.count_walks()
    return graph


def listed(actions: Sequence[Action]) -> Graph:
    """As `counted`, and every edge listed; twice the nodes have four times the edges."""
    graph = counted(actions)
    graph.edges()
    return graph


def seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def per_second(draw: Callable[[int], object], count: int) -> float:
    draw(0)
    return count / seconds(lambda: [draw(number) for number in range(count)])


def bare(graph: Graph) -> Callable[[int], object]:
    """A walk with no policy at all: the limit."""
    after = {
        state: ([action.name for action, _ in arcs], [reached for _, reached in arcs])
        for state, arcs in graph.space.arcs.items()
    }
    chance = random.Random(0).random

    def walk(number: int) -> list[str]:
        state, path = graph.start, []
        while (choices := after[state])[0]:
            place = int(chance() * len(choices[0]))
            path.append(choices[0][place])
            state = choices[1][place]
        return path

    return walk


def measure(rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """Results and ratios."""
    results: dict[str, float] = {}
    results["declare_s_1000_nodes"] = seconds(lambda: library(1_000))
    thousand, double, small = library(1_000), library(2_000), library(64)
    runs: dict[str, Callable[[], object]] = {
        "build_s_1000_nodes": lambda: listed(thousand),
        "count_s_1000_nodes": lambda: counted(thousand),
        "count_s_2000_nodes": lambda: counted(double),
        "count_s_64_nodes": lambda: counted(small),
        "naive_s_64_nodes": lambda: naive(small),
    }
    took: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            took[name].append(seconds(run))
    results |= {name: statistics.median(times) for name, times in took.items()}
    results["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    graph = listed(thousand)
    results |= {
        "walks": float(graph.count_walks()),
        "nodes_on_walks": float(len(graph.nodes)),
        "edges": float(len(graph.edges())),
        "states": float(len(graph.space.arcs)),
    }
    for stage in (0, STAGES - 1):
        like = next(node for node in graph.nodes if node.name.startswith(f"stage{stage}/"))
        more = like.renamed(f"stage{stage}/new")
        results[f"with_node_of_stage_{stage}_s"] = seconds(partial(graph.with_node, more))
    states, whole = naive(thousand)
    results["naive_states_1000_nodes"] = float(states) if whole else float("inf")
    count = 5_000 * rounds
    results["paths_per_s"] = per_second(lambda n: paths(graph, Draws(0, "seed", n)), 4 * count)
    results["uniform_per_s"] = per_second(lambda n: uniform(graph, Draws(0, "seed", n)), count)
    cover = Cover(graph)
    results["cover_per_s"] = per_second(lambda n: cover.route(), 100 * rounds)
    results["bare_walks_per_s"] = per_second(bare(graph), 4 * count)
    ratios = {
        "build_s_1000_nodes": results["build_s_1000_nodes"],
        "walks_per_s": results["paths_per_s"],
        "growth_on_doubling": results["count_s_2000_nodes"] / results["count_s_1000_nodes"],
        "build_vs_naive_64_nodes": results["naive_s_64_nodes"] / results["count_s_64_nodes"],
        "walks_vs_limit": results["paths_per_s"] / results["bare_walks_per_s"],
    }
    return results, ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="once each, within 50 s on 2 cores")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    arguments = parser.parse_args()
    results, ratios = measure(rounds=1 if arguments.quick else 5)
    for name, value in (results | ratios).items():
        said = f"more than {CAP:,}: stopped" if value == float("inf") else f"{value:.5g}"
        print(f"{name:26} {said}")
    if arguments.json is not None:
        record = {
            "name": "graph",
            "date": datetime.now(UTC).date().isoformat(),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
            "results": {name: value for name, value in results.items() if value != float("inf")},
            "ratios": ratios,
        }
        arguments.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
