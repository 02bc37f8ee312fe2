from __future__ import annotations

from dataforge.drawing.mermaid import MOST_LINKS, mermaid
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.node import gate
from tests.drawing.graphs import layered, small
from tests.plan.scene import TEXT, acts


def test_it_frames_families_and_dots_carried_edges() -> None:
    assert mermaid(small()) == (
        "flowchart LR\n"
        '  subgraph f0["seed"]\n'
        '    n3(["gate"])\n'
        "  end\n"
        '  subgraph f1["ask"]\n'
        '    n0["#lt;/script>#lt;b>&amp; #quot;\'$title"]\n'
        '    n1["plain"]\n'
        "  end\n"
        '  subgraph f2["tried"]\n'
        '    n4[["plain<br/>answer/plain → judge/fair<br/>'
        "at most 3 times, until verdict is 'pass'\"]]\n"
        "  end\n"
        '  subgraph f3["end"]\n'
        '    n2(["end"])\n'
        "  end\n"
        "  n0 --> n4\n"
        "  n1 --> n4\n"
        "  n3 --> n0\n"
        "  n3 --> n1\n"
        "  n4 -.-> n2\n"
    )


def test_more_edges_than_mermaid_draws_are_counted_between_frames() -> None:
    text = mermaid(layered(3, 15, 1))
    assert "  %% 480 edges, counted between the frames that they join\n" in text
    links = [line for line in text.splitlines() if "-->" in line]
    assert links == [
        "  f0 -->|15| f1",
        "  f1 -->|225| f2",
        "  f2 -->|225| f3",
        "  f3 -->|15| f4",
    ]


def test_edges_within_a_frame_are_counted_without_a_link_to_itself() -> None:
    free = [acts(f"any/{n}", {}, {f"x{n}": TEXT}) for n in range(5)]
    wide = [acts(f"two/{n}", {"x0": TEXT, "x1": TEXT}, {"y": TEXT}) for n in range(MOST_LINKS)]
    end = acts("end", {"y": TEXT}, {"z": TEXT})
    actions: list[Action] = [gate("go", {"p": TEXT}), *free, *wide, end]
    text = mermaid(Graph.build("any order", actions, "go", "end"))
    assert "more within f" in text
    links = [line.split() for line in text.splitlines() if "->" in line]
    assert links
    assert all(before != after for before, _, after in links)
