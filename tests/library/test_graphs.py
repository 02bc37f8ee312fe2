"""Graph files: what they pick, set, loop and nest, and what a faulty one is told."""

from __future__ import annotations

import pytest

from dataforge.errors import (
    DataForgeError,
    DuplicateName,
    GraphError,
    NodeOnNoWalk,
    TooManyStates,
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


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (
            '["retell/*", "ask/*", "inner", "graph:inner"]',
            "graphs/qa.toml:4: 'graph:inner' and 'inner' both put 'inner' into this graph; give",
        ),
        (
            '["retell/*", "ask/*", "graph:inner", "inner"]',
            "graphs/qa.toml:4: 'inner' and 'graph:inner' both put 'inner' into this graph; give",
        ),
        (
            '["retell/*", "ask/*", "inn*", "graph:inner"]',
            "graphs/qa.toml:4: 'graph:inner' and 'inn*' both put 'inner' into this graph; give",
        ),
        (
            '["retell/*", "ask/*", "graph:inner",\n"graph:inner.toml"]',
            "graphs/qa.toml:5: 'graph:inner.toml' and 'graph:inner' both put 'inner' into this "
            "graph; leave one out",
        ),
        (
            '["retell/*", "ask/play",\n"ask/*",\n"ask/play"]',
            "graphs/qa.toml:6: 'ask/play' and 'ask/play' both put 'ask/play' into this "
            "graph; leave one out",
        ),
        (
            '["retell/*", "ask/play", "mine:ask/play"]',
            "graphs/qa.toml:4: 'mine:ask/play' and 'ask/play' both put 'ask/play' into this graph",
        ),
        (
            '["retell/*", "ask/*", "graph:sample"]',
            "graphs/qa.toml:4: 'graph:sample' and 'target' both put 'sample' into this graph; give",
        ),
        (
            '["retell/*", "ask/*", "graph:answered/plain+sober"]',
            "graphs/qa.toml:4: 'graph:answered/plain+sober' and 'loop answered' both put ",
        ),
    ],
)
def test_two_things_of_one_name_are_refused_naming_both_and_the_line(
    write: Write, nodes: str, said: str
) -> None:
    own = ASK.partition("[explain]")[0].replace("[shared]\n", "").replace("{name}", "inner")
    inner = 'source = { text = { type = "str" } }\nnodes = []\ntarget = "ask/play"\n'
    files = {f"graphs/{name}.toml": inner for name in ("inner", "sample", "answered/plain+sober")}
    graph = swapped('["retell/*", "ask/*"]', nodes)
    assert refusal(write, graph, **{"nodes/inner.toml": own, **files}).startswith(said)


def test_a_node_that_a_pattern_matches_too_may_be_named_outright(write: Write) -> None:
    for nodes in ('["ask/play", "ask/*", "retell/*"]', '["retell/*", "ask/*", "ask/play"]'):
        loaded = load(write, swapped('["retell/*", "ask/*"]', nodes))
        assert node_names(loaded) == node_names(load(write))
    assert node_names(load(write, swapped('"ask/*"]', '"ask/*", "sample"]'))) == node_names(
        load(write)
    )


def test_a_node_left_out_because_its_name_is_taken_is_a_notice(write: Write) -> None:
    own = RETELL.partition("[rap]")[0].replace("[shared]\n", "") + 'style = "x"\n'
    loaded = load(write, swapped('["retell/*", "ask/*"]', '["*"]'), **{"nodes/source.toml": own})
    assert (
        "source, which '*' matches, is left out: the name is taken here by 'source'"
        in loaded.notices
    )


OUTER = """
source = { passage = { type = "str", min_len = 20 } }
target = { messages = { type = "list[dict[str, str]]" } }
nodes = [%s]
"""


def test_a_nested_graph_is_meant_by_its_entry_wherever_a_name_stands(write: Write) -> None:
    outer = OUTER % '"graph:qa"' + '[weights]\n"graph:qa" = 3\n'
    library = write({**FILES, "graphs/outer.toml": outer})
    weights = {node.name: node.weight for node in load_graph("outer", library).graph.nodes}
    assert weights["qa"] == 3


def test_a_graph_named_as_a_node_and_a_top_level_node_misspelt_are_hinted_at(write: Write) -> None:
    library = write({**FILES, "graphs/outer.toml": OUTER % '"qa"'})
    with pytest.raises(DataForgeError, match="'qa' is no node but a graph; write 'graph:qa'"):
        load_graph("outer", library)
    said = refusal(write, swapped("retell/*", "lost"))
    assert said.endswith(
        "Nodes: answer/*, ask/*, judge/answer/*, retell/*, sample; each is listed by "
        "`dataforge check`"
    )


ASIDE = """
[shared]
role = "writer"
prompt = "{passage}"
preconditions.passage = { type = "str" }
"""
GATHER = """
from dataforge import Struct, node


class Asides(Struct):
    {fields}


class Gathered(Struct):
    {made}: str


@node
def gather(seen: Asides) -> Gathered:
    return Gathered({made}="")
"""


def test_too_many_optional_nodes_are_split_as_the_advice_says(write: Write) -> None:
    """Flat and in one nested graph they are too many; a few in each build, and are handed on."""
    groups = [range(5), range(5, 10), range(10, 15)]
    given = 'source = { passage = { type = "str", min_len = 20 } }\n'
    same = '{ passage = { type = "str" } }'
    files = {
        "nodes/aside.toml": ASIDE
        + "".join(
            f"[a{n}]\nwrites.a{n} = '{{reply}}'\npostconditions.a{n} = {{ type = 'str' }}\n"
            for n in range(15)
        ),
        "graphs/flat.toml": f'{given}nodes = ["aside/*"]\ntarget = {same}\n',
        "graphs/nested.toml": f'{given}nodes = ["graph:flat"]\ntarget = "aside/a0"\n',
    }
    for place, group in enumerate(groups):
        names = ", ".join(f'"aside/a{n}"' for n in group)
        fields = "\n    ".join(f"a{n}: str | None = None" for n in group)
        files[f"nodes/gather{place}.py"] = GATHER.format(fields=fields, made=f"g{place}")
        for name, target in (("bare", "{}"), ("kept", f'"gather{place}/gather"')):
            files[f"graphs/{name}{place}.toml"] = f"{given}nodes = [{names}]\ntarget = {target}\n"
    some = [f'a{group[0]} = {{ type = "str" }}' for group in groups]
    every = [f'g{place} = {{ type = "str" }}' for place in range(3)]
    for name, needs in (("bare", some), ("kept", every)):
        inside = ", ".join(f'"graph:{name}{place}"' for place in range(3))
        files[f"graphs/{name}.toml"] = (
            f"{given}nodes = [{inside}]\ntarget = {{ {', '.join(needs)} }}\n"
        )
    library = write(files)
    for name in ("flat", "nested"):
        with pytest.raises(TooManyStates, match="Split the nodes that write and read them over"):
            load_graph(name, library)
    with pytest.raises(UnreachableTarget, match="a0: needs str, has nothing"):
        load_graph("bare", library)
    kept = load_graph("kept", library).graph
    assert [node.name for node in kept.nodes] == ["kept0", "kept1", "kept2", "source", "target"]
    assert kept.nodes[0].ways > 2**5
