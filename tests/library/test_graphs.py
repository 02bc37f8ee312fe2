"""Graph files: what they pick, set, loop and nest, and what a faulty one is told."""

from __future__ import annotations

import pytest

from dataforge.errors import (
    DataForgeError,
    DuplicateName,
    GraphError,
    NodeOnNoWalk,
    UnreachableTarget,
)
from dataforge.library.graphs import LoadedGraph, graph_names, load_graph
from dataforge.library.root import Library
from dataforge.plan.loop import Loop
from tests.library.scene import Write

RETELL = """
[shared]
role = "writer"
temperature = 0.5
prompt = "{passage} as {style}"
writes.text = "{reply}"
preconditions.passage = { type = "str", min_len = 10 }
postconditions.text = { type = "str", min_len = 5 }
tags = ["plain"]
[rap]
style = "a rap"
tags = ["verse"]
[news]
style = "news"
"""
ANSWER = """
[shared]
role = "answerer"
prompt = "{instruction}"
append.critique = "{critique}"
writes.answer = "{reply}"
preconditions.instruction = { type = "str" }
preconditions.critique = { type = "str", optional = true }
postconditions.answer = { type = "str" }
[plain]
preconditions.task = ["explain", "argue"]
[poet]
preconditions.task = "play"
[mute]
preconditions.task = "nothing"
"""
ASK = """
[shared]
role = "writer"
prompt = "{text}: {task}"
writes.instruction = "{reply}"
preconditions.text = { type = "str" }
postconditions.instruction = { type = "str" }
postconditions.task = "{name}"
task = "{name}"
[explain]
[argue]
[play]
"""
RUBRICS = """
[shared]
judges = "answer"
prompt = "{answer}"
criteria.it = "Is it?"
[sober]
preconditions.task = ["explain", "argue"]
[playful]
preconditions.task = ["play"]
"""
SAMPLE = """
from typing import Literal
from dataforge import Struct, node

class Passed(Struct):
    instruction: str
    answer: str
    verdict: Literal["pass"]

class Conversation(Struct):
    messages: list[dict[str, str]]

@node
async def sample(seen: Passed, *, polite: bool = False) -> Conversation:
    \"\"\"The pair.\"\"\"
    return Conversation(messages=[])
"""
GRAPH = """
description = "Retell, ask, answer."
source = { passage = { type = "str", min_len = 20 } }
nodes = ["retell/*", "ask/*"]
target = "sample"

[[loop]]
name = "answered"
body = ["answer/*", "judge/*"]
until.verdict = "pass"
at_most = 3
critique = "feedback"

[roles]
writer = "embedded"
judge = "code:likeness"
"""
FILES = {
    "nodes/retell.toml": RETELL,
    "nodes/ask.toml": ASK,
    "nodes/answer.toml": ANSWER,
    "nodes/sample.py": SAMPLE,
    "judges/answer.toml": RUBRICS,
    "graphs/qa.toml": GRAPH,
}


def load(write: Write, graph: str = GRAPH, **files: str) -> LoadedGraph:
    library = write({**FILES, "graphs/qa.toml": graph, **files})
    return load_graph("qa", library)


def node_names(loaded: LoadedGraph) -> list[str]:
    return [node.name for node in loaded.graph.nodes]


def refusal(write: Write, graph: str, **files: str) -> str:
    with pytest.raises(DataForgeError) as caught:
        load(write, graph, **files)
    return str(caught.value)


def swapped(old: str, new: str) -> str:
    assert old in GRAPH
    return GRAPH.replace(old, new)


def test_a_graph_is_built_from_the_nodes_its_file_picks(write: Write) -> None:
    loaded = load(write)
    assert node_names(loaded) == [
        "answered/plain+sober",
        "answered/poet+playful",
        "ask/argue",
        "ask/explain",
        "ask/play",
        "retell/news",
        "retell/rap",
        "sample",
        "source",
    ]
    assert loaded.graph.count_walks() == 6
    assert loaded.roles == {"writer": "embedded", "judge": "code:likeness"}
    assert loaded.description == "Retell, ask, answer."
    assert loaded.notices == ("answer/mute fits into no chain of the loop answered",)


def test_a_dropped_in_file_joins_the_graph_with_no_other_edit(write: Write) -> None:
    ninth = RETELL.replace("[shared]\n", "").partition("[rap]")[0] + 'style = "a haiku"\n'
    loaded = load(write, **{"nodes/retell/haiku.toml": ninth})
    assert "retell/haiku" in node_names(loaded)
    assert loaded.graph.count_walks() == 9


def test_a_node_above_takes_the_place_of_one_beneath_and_others_join(
    write: Write, tmp_path_factory: pytest.TempPathFactory
) -> None:
    above = tmp_path_factory.mktemp("above")
    (above / "nodes").mkdir()
    own = RETELL.replace("a rap", "an ode").replace("[news]", "[ode]")
    (above / "nodes" / "retell.toml").write_text(own)
    beneath = write(FILES)
    loaded = load_graph("qa", Library("above", above, beneath))
    by_name = {node.name: node for node in loaded.graph.nodes}
    assert {"retell/rap", "retell/ode", "retell/news"} < by_name.keys()
    assert loaded.graph.digest != load_graph("qa", beneath).graph.digest


def test_a_pattern_may_keep_to_one_library(
    write: Write, tmp_path_factory: pytest.TempPathFactory
) -> None:
    beneath = tmp_path_factory.mktemp("beneath")
    (beneath / "nodes").mkdir()
    (beneath / "nodes" / "retell.toml").write_text(RETELL.replace("[news]", "[ode]"))
    own = write({**FILES, "graphs/qa.toml": swapped("retell/*", "mine:retell/*")})
    layers = Library("mine", own.root, Library("beneath", beneath))
    assert "retell/ode" not in node_names(load_graph("qa", layers))


def test_nodes_are_picked_by_tag_name_and_pattern(write: Write) -> None:
    assert "retell/news" not in node_names(load(write, swapped("retell/*", "tag:verse")))
    assert "retell/news" not in node_names(load(write, swapped("retell/*", "retell/rap")))
    assert "retell/news" not in node_names(load(write, swapped("retell/*", "retell/r?p")))


def test_the_whole_library_by_one_star_leaves_out_what_stands_elsewhere(write: Write) -> None:
    loaded = load(write, swapped('["retell/*", "ask/*"]', '["*"]'))
    assert node_names(loaded) == node_names(load(write))


def test_settings_go_to_the_nodes_that_have_them(write: Write) -> None:
    settings = '[settings."*"]\ntemperature = 1\n[settings.sample]\npolite = true\n'
    loaded = load(write, GRAPH + settings)
    by_name = {node.name: node for node in loaded.graph.nodes}
    assert by_name["sample"].digest != load(write).graph.nodes[-2].digest
    loop = by_name["answered/poet+playful"]
    assert isinstance(loop, Loop)
    assert loop.steps[0].digest != _loop(load(write)).steps[0].digest


def _loop(loaded: LoadedGraph) -> Loop:
    loop = next(node for node in loaded.graph.nodes if node.name == "answered/poet+playful")
    assert isinstance(loop, Loop)
    return loop


def test_weights_are_set_by_pattern(write: Write) -> None:
    loaded = load(write, GRAPH + '[weights]\n"retell/*" = 3\n"answered/poet+playful" = 0.5\n')
    weights = {node.name: node.weight for node in loaded.graph.nodes}
    assert (weights["retell/rap"], weights["retell/news"], weights["ask/play"]) == (3, 3, 1)
    assert weights["answered/poet+playful"] == 0.5


def test_a_loop_hands_back_its_critique_and_ends_as_its_file_says(write: Write) -> None:
    loop = _loop(load(write))
    assert [step.name for step in loop.steps] == ["answer/poet", "judge/answer/playful"]
    assert (loop.at_most, loop.critique) == (3, "feedback")
    verdict = loop.postconditions["verdict"]
    assert verdict is not None and verdict.say() == "'pass'"
    assert "critique" not in loop.preconditions


def test_loops_whose_short_names_would_be_the_same_bear_the_long_ones(write: Write) -> None:
    more = RUBRICS.replace("[playful]", "[none]").replace('["play"]', '["x"]')
    loaded = load(write, **{"judges/again.toml": more})
    names = [name for name in node_names(loaded) if name.startswith("answered/")]
    assert names == [
        "answered/answer/plain+judge/again/sober",
        "answered/answer/plain+judge/answer/sober",
        "answered/poet+playful",
    ]


def test_a_graph_within_a_graph_is_one_node_and_brings_its_roles(write: Write) -> None:
    outer = (
        'source = { passage = { type = "str", min_len = 20 } }\n'
        'target = { messages = { type = "list[dict[str, str]]" } }\n'
        'nodes = ["graph:qa"]\n[roles]\njudge = "embedded"\n'
    )
    library = write({**FILES, "graphs/deep/outer.toml": outer})
    loaded = load_graph("deep/outer", library)
    assert [node.name for node in loaded.graph.nodes] == ["qa", "source", "target"]
    assert loaded.roles == {"writer": "embedded", "judge": "embedded"}
    assert loaded.notices == ("in qa: answer/mute fits into no chain of the loop answered",)
    assert graph_names(library) == ["deep/outer", "qa"]


def test_a_graph_that_holds_itself_is_refused(write: Write) -> None:
    inner = swapped('"ask/*"]', '"ask/*", "graph:other"]')
    said = refusal(write, inner, **{"graphs/other.toml": swapped('"ask/*"]', '"graph:qa"]')})
    assert said == "graphs/qa.toml: a graph cannot hold itself: qa -> other -> qa"


def test_a_graph_is_found_by_its_path_too(write: Write) -> None:
    library = write(FILES)
    assert load_graph("graphs/qa.toml", library).graph.name == "qa"
    with pytest.raises(DataForgeError, match=r"no graphs/qaa in mine \(\.\); did you mean 'qa'\?"):
        load_graph("qaa", library)


def test_a_node_and_a_rubric_of_one_name_are_refused(write: Write) -> None:
    with pytest.raises(
        DuplicateName,
        match=r"both named 'judge/answer/sober': the node in nodes/judge/answer/sober\.toml, the "
        r"rubric in judges/answer\.toml:6; rename one",
    ):
        load(
            write,
            **{
                "nodes/judge/answer/sober.toml": RETELL.partition("[news]")[0]
                .replace("[shared]\n", "")
                .replace('[rap]\nstyle = "a rap"\ntags = ["verse"]', 'style = "x"')
            },
        )


def test_a_node_that_a_pattern_picks_for_nothing_is_a_notice(write: Write) -> None:
    loaded = load(
        write,
        **{
            "nodes/ask/far.toml": ASK.partition("[explain]")[0]
            .replace("[shared]\n", "")
            .replace("min_len", "")
            .replace("preconditions.text", "preconditions.txt")
            .replace("{text}", "{txt}")
        },
    )
    assert [notice for notice in loaded.notices if notice.startswith("ask/far")]


def test_a_node_named_outright_that_lies_on_no_walk_is_an_error(write: Write) -> None:
    library = write({**FILES, "graphs/qa.toml": swapped('"ask/*"]', '"ask/*", "answer/mute"]')})
    with pytest.raises(NodeOnNoWalk, match=r"^graphs/qa\.toml: "):
        load_graph("qa", library)


def test_an_unreachable_target_names_the_file_and_what_is_lacking(write: Write) -> None:
    library = write({**FILES, "graphs/qa.toml": swapped('"ask/*"]', '"ask/play"]')})
    assert load_graph("qa", library).graph.count_walks() == 2
    library = write({**FILES, "graphs/qa.toml": swapped(', "ask/*"', "")})
    with pytest.raises(UnreachableTarget) as caught:
        load_graph("qa", library)
    assert str(caught.value).startswith("graphs/qa.toml: ")
    assert "instruction" in str(caught.value)


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (swapped("nodes =", "node ="), "graphs/qa.toml node: there is no such key of a graph; did"),
        (swapped('target = "sample"\n', ""), "graphs/qa.toml: 'target' is missing. It has: descri"),
        (
            swapped("retell/*", "retel/*"),
            "graphs/qa.toml nodes: no node matches 'retel/*'; did you mean 'retell/*'? Try: ",
        ),
        (
            swapped("retell/*", "retell/rep"),
            "graphs/qa.toml nodes: there is no node 'retell/rep'; did you mean 'retell/rap'? ",
        ),
        (
            swapped("retell/*", "tag:vers"),
            "graphs/qa.toml nodes: no node has the tag 'vers'; did you mean 'verse'? Tags: plain",
        ),
        (swapped('"sample"', '"sample/*"'), "graphs/qa.toml target: no single node is meant by"),
        (
            swapped("answer/*", "anser/*"),
            "graphs/qa.toml [loop 1] body: no node matches 'anser/*'; did you mean 'answer/*'?",
        ),
        (
            swapped('["answer/*", "judge/*"]', '["ask/*", "ask/*"]'),
            "graphs/qa.toml [loop 1] body: loop 'answered/ask/argue+ask/argue': ",
        ),
        (
            swapped("until.verdict", "until.verdit"),
            "graphs/qa.toml [loop 1]: loop 'answered/plain+sober': until reads 'verdit', which no",
        ),
        (swapped("at_most = 3", "at_most = 0"), "graphs/qa.toml [loop 1] at_most: must be a whole"),
        (swapped("at_most = 3\n", ""), "graphs/qa.toml [loop 1]: 'at_most' is missing"),
        (
            swapped("[[loop]]", "[loop]"),
            "graphs/qa.toml loop: needs a list, not",
        ),
        (
            GRAPH + '[settings."retell/*"]\ntemprature = 1\n',
            "graphs/qa.toml settings.retell/*.temprature: no node that 'retell/*' picks has this "
            "setting; did you mean 'temperature'? They have: ",
        ),
        (
            GRAPH + '[settings."retell/rap"]\ntemperature = "hot"\n',
            "graphs/qa.toml settings.retell/rap: retell/rap: setting 'temperature' is 'hot': ",
        ),
        (
            GRAPH + '[settings."retell/*"]\ntemperature = 9\n',
            "graphs/qa.toml settings.retell/*: retell/news: setting 'temperature' is 9: Input",
        ),
        (
            GRAPH + '[settings."retell/rap"]\nstyle = "{pasage}"\n',
            "graphs/qa.toml settings.retell/rap: so set, prompt of retell/rap names {pasage}, "
            "which nothing fills; did you mean 'passage'? Allowed there: name, passage",
        ),
        (
            GRAPH + '[settings."retel/*"]\ntemperature = 1\n',
            "graphs/qa.toml settings.retel/*: picks no node of this graph",
        ),
        (
            GRAPH + '[weights]\n"retell/rop" = 2\n',
            "graphs/qa.toml weights.retell/rop: picks no node of this graph; did you mean",
        ),
        (GRAPH + '[weights]\n"retell/rap" = 0\n', "graphs/qa.toml weights.retell/rap: must be at"),
        (
            swapped("writer =", "wrter ="),
            "graphs/qa.toml roles.wrter: no node of this graph has this role; did you mean "
            "'writer'? Roles: answerer, judge, writer",
        ),
        (swapped('writer = "embedded"', "writer = 1"), "graphs/qa.toml roles.writer: needs text"),
        (GRAPH + "x = [", "graphs/qa.toml: is not TOML: "),
    ],
)
def test_a_faulty_graph_is_refused_by_file_table_and_key(
    write: Write, graph: str, said: str
) -> None:
    assert refusal(write, graph).startswith(said)


def test_a_graph_error_is_wrong_usage() -> None:
    assert GraphError.exit_code == 2
