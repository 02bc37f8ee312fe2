from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import dataforge.drawing.page as page_module
from dataforge.drawing.layout import lay_out
from dataforge.drawing.page import page
from dataforge.plan.graph import Graph
from dataforge.plan.node import gate
from tests.drawing.graphs import HOSTILE, layered, nested, small
from tests.plan.scene import TEXT


class Page(HTMLParser):
    """A page as a browser takes it apart."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.policy = ""
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [str(value) for name, value in attrs if name in ("src", "href")]
        if ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = str(dict(attrs)["content"])

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.tags[-1] if self.tags else "", []).append(data)


def scenes(graph: Graph) -> list[dict[str, Any]]:
    data = json.loads(Page(page(graph)).texts["script"][0])
    found: list[dict[str, Any]] = data["scenes"]
    return found


def node(scene: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [each for each in scene["nodes"] if each["name"] == name]
    return dict(found)


@pytest.mark.parametrize("graph", [small(), nested(), layered(2, 60, 3)])
def test_the_page_holds_every_node_where_the_layout_puts_it_and_every_edge(graph: Graph) -> None:
    scene = scenes(graph)[0]
    boxes = [box for frame in lay_out(graph).frames for box in frame.boxes]
    assert [each["name"] for each in scene["nodes"]] == [box.action.name for box in boxes]
    for each, box in zip(scene["nodes"], boxes, strict=True):
        assert each["at"][:2] == [round(box.at.x, 1), round(box.at.y, 1)]
    frames = [frame for column in scene["columns"] for frame in column["frames"]]
    assert sum(sum(frame["lanes"]) for frame in frames) == len(boxes)
    names = [each["name"] for each in scene["nodes"]]
    edges = {
        (names[before], names[after], kind)
        for before, following in enumerate(scene["edges"])
        for kind, places in zip(("tight", "carried"), following, strict=True)
        for after in places
    }
    assert edges == {(edge.before, edge.after, edge.kind) for edge in graph.edges()}


def test_a_node_tells_what_it_needs_and_gives_and_what_it_only_implies() -> None:
    scene = scenes(small())[0]
    asked = node(scene, "ask/plain")
    assert asked["needs"] == [["passage", "str", False], ["question", "absent", True]]
    assert asked["gives"] == [["question", "str"]]
    looped = node(scene, "tried/plain")
    assert looped["kind"] == "loop"
    assert looped["about"] == [
        ["steps", "answer/plain → judge/fair"],
        ["until", "verdict is 'pass'"],
        ["at most", "3 times"],
        ["roles", "writer (model)"],
        ["weight", "1"],
    ]
    assert scene["idle"] == ["ask/idle"]
    ends = [scene["nodes"][scene[end]]["name"] for end in ("source", "target")]
    assert ends == ["seed/gate", "end"]


def test_what_is_nested_is_a_scene_of_its_own_at_any_depth_and_kept_once() -> None:
    outer, inner, body = scenes(nested())
    assert node(outer, "inside/one")["inside"] == node(outer, "inside/two")["inside"] == 1
    assert node(outer, "go")["inside"] is None
    assert node(inner, "tried/plain")["inside"] == 2
    assert [each["name"] for each in body["nodes"]] == ["answer/plain", "judge/fair"]


def test_names_are_data_and_never_markup() -> None:
    text = page(small())
    plain = Page(page(layered(1, 2, 1)))
    assert Page(text).tags == plain.tags
    assert HOSTILE in [each["name"] for each in scenes(small())[0]["nodes"]]
    assert Page(text).texts["h1"][0] == "a <picture>"
    assert text.count("</script>") == 2


def test_the_page_reaches_for_nothing_and_runs_nothing_but_its_own_script() -> None:
    text = page(small())
    assert Page(text).links == ["data:,"]
    assert not re.search(r"@import|url\((?!#)|\bfetch\(|\bimport\(|innerHTML|\beval\(", text)
    assert Page(text).policy.startswith("default-src 'none'")
    for tag in ("style", "script"):
        content = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        hashed = [b64encode(sha256(each.encode()).digest()).decode() for each in content]
        assert [f"{tag}-src 'sha256-{each}'" in Page(text).policy for each in hashed] == [True]


def test_a_graph_of_one_node_is_a_page_too() -> None:
    (scene,) = scenes(Graph.build("one", [gate("only", {"p": TEXT})], "only", "only"))
    assert scene["summary"] == "1 node, 0 edges, 1 walk of 1 node"
    assert [each["name"] for each in scene["nodes"]] == ["only"]


def test_the_same_graph_gives_the_same_bytes() -> None:
    assert page(nested()) == page(nested())


def test_a_thousand_nodes_and_ninety_thousand_edges_make_a_page_of_one_megabyte() -> None:
    graph = layered(10, 100, 4)
    assert len(graph.edges()) == 90_200
    assert len(page(graph).encode()) < 1_000_000


def test_every_letter_the_page_listens_to_is_among_its_keys() -> None:
    script = (Path(page_module.__file__).parent / "explore.js").read_text(encoding="utf-8")
    listened = re.search(r"^const keys = \{(.*?)\};", script, re.M | re.S)
    told = re.search(r"^  const keys = \[(.*?)\];", script, re.M | re.S)
    assert listened is not None and told is not None
    letters = re.findall(r"\b([a-z]): \w", listened[1])
    assert letters == ["e", "u"]
    assert all(f'["{letter}", ' in told[1] for letter in letters)
