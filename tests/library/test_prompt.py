"""What a prompt node asks, and what it makes of each kind of reply."""

from __future__ import annotations

import json
import re

import pytest

from dataforge.errors import LibraryError, Unmet
from dataforge.library.nodes import AnyNode, load_nodes
from dataforge.library.prompt import opened_by, whole_sentences
from dataforge.models.base import Message
from dataforge.plan.struct import Struct
from tests.library.scene import Scripted, Write, cut, withheld

RAP = """
role = "writer"
attempts = 3
temperature = 0.5
top_p = 0.9
max_tokens = 40
weight = 2.0
tags = ["verse", "short"]
system = "You write {style}."
prompt = "{passage}\\n\\nNow {style}, {{loudly}}, in {count} lines."
append.critique = "\\nMind: {critique}"
writes.text = "{reply}"
preconditions.passage = { type = "str", min_len = 5 }
preconditions.count = { type = "int", ge = 1 }
preconditions.critique = { type = "str", optional = true }
preconditions.draft = { absent = true }
postconditions.text = { type = "str", min_len = 3, max_len = 60 }
postconditions.form = "{name}"
style = "a {tone} rap"
tone = "warm"
"""
PASSAGE = "The old bridge over the river was closed for repair in May and opened in June."


def load(write: Write, text: str = RAP) -> AnyNode:
    return load_nodes(write({"nodes/rap.toml": text}))["rap"]


def seen(node: AnyNode, **fields: object) -> Struct:
    return node.takes.model_validate({"passage": PASSAGE, "count": 4, **fields})


def swapped(old: str, new: str) -> str:
    assert old in RAP
    return RAP.replace(old, new)


async def test_the_prompt_is_filled_in_and_the_reply_becomes_the_promised_fields(
    write: Write,
) -> None:
    node, model = load(write), Scripted("  Yo, the bridge.\n")
    made = await node(seen(node), writer=model)
    assert dict(made) == {"text": "Yo, the bridge.", "form": "rap"}
    assert model.asked == [
        [
            Message("system", "You write a warm rap."),
            Message("user", f"{PASSAGE}\n\nNow a warm rap, {{loudly}}, in 4 lines."),
        ]
    ]
    assert model.params == [{"temperature": 0.5, "top_p": 0.9, "max_tokens": 40, "schema": None}]


def test_the_node_is_what_its_table_says(write: Write) -> None:
    node = load(write)
    assert node.roles == {"writer": "model"}
    assert (node.attempts, node.weight, node.tags) == (3, 2.0, frozenset({"verse", "short"}))
    assert node.preconditions["draft"] is None
    assert node.requires["form"] is None
    assert node.settings["style"] == "a {tone} rap"


async def test_an_addition_stands_when_its_optional_field_does(write: Write) -> None:
    node, model = load(write), Scripted("One two.")
    await node(seen(node, critique="be brief {tone}"), writer=model)
    assert model.asked[0][1].content.endswith("in 4 lines.\nMind: be brief {tone}")


async def test_examples_come_before_the_prompt_as_turns(write: Write) -> None:
    node = load(write, 'examples = [["As {style}?", "Yo."], ["{passage}", "Ho."]]\n' + RAP)
    model = Scripted("One two.")
    await node(seen(node), writer=model)
    assert [(turn.role, turn.content) for turn in model.asked[0][1:5]] == [
        ("user", "As a warm rap?"),
        ("assistant", "Yo."),
        ("user", PASSAGE),
        ("assistant", "Ho."),
    ]


async def test_a_setting_changes_what_is_asked(write: Write) -> None:
    node, model = load(write).with_settings(tone="cold", max_tokens=9), Scripted("One two.")
    await node(seen(node), writer=model)
    assert model.asked[0][0].content == "You write a cold rap."
    assert model.params[0]["max_tokens"] == 9


async def test_braces_in_a_passage_stay_what_they_are(write: Write) -> None:
    node, model = load(write), Scripted("{passage} {tone}")
    made = await node(seen(node, passage="{tone} {{x}} {0}"), writer=model)
    assert model.asked[0][1].content.startswith("{tone} {{x}} {0}\n\n")
    assert dict(made)["text"] == "{passage} {tone}"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (" \n", "empty reply"),
        ("ab", "text is not str of 3 to 60 characters: 'ab' (2 characters)"),
        (cut("A whole line. And a ha"), "reply cut at max_tokens: after 9 tokens"),
        (withheld("I cannot."), "reply withheld: I cannot."),
    ],
)
async def test_a_reply_that_cannot_keep_the_promise_is_unmet(
    write: Write, reply: str, said: str
) -> None:
    node = load(write)
    with pytest.raises(Unmet) as caught:
        await node(seen(node), writer=Scripted(reply))
    assert str(caught.value).startswith(said)


async def test_a_cut_reply_may_be_trimmed_to_its_last_whole_sentence(write: Write) -> None:
    node = load(write, 'truncated = "trim"\n' + RAP)
    made = await node(seen(node), writer=Scripted(cut("A whole line. And a ha")))
    assert dict(made)["text"] == "A whole line."
    with pytest.raises(
        Unmet, match="reply cut at max_tokens: before the end of its first sentence"
    ):
        await node(seen(node), writer=Scripted(cut("And a ha")))


async def test_a_reply_that_was_not_cut_is_never_trimmed(write: Write) -> None:
    node = load(write, 'truncated = "trim"\n' + RAP)
    made = await node(seen(node), writer=Scripted("A whole line. And a title"))
    assert dict(made)["text"] == "A whole line. And a title"


@pytest.mark.parametrize(("reply", "was_cut"), [(cut("And a ha"), True), ("And so.", False)])
async def test_a_cut_reply_may_be_kept_and_noted(write: Write, reply: str, was_cut: bool) -> None:
    text = 'truncated = "allow"\nwrites_truncated = "was_cut"\n' + RAP
    node = load(
        write, text.replace("style =", 'postconditions.was_cut = { type = "bool" }\nstyle =')
    )
    assert dict(await node(seen(node), writer=Scripted(reply)))["was_cut"] is was_cut


async def test_a_reply_that_quotes_what_it_must_not_is_unmet(write: Write) -> None:
    node = load(write, 'unquoted = ["passage"]\n' + RAP)
    made = await node(seen(node), writer=Scripted("the bridge over the river was closed, so"))
    assert dict(made)["form"] == "rap"
    with pytest.raises(Unmet, match="quotes passage: 8 words in a row: 'old bridge over the river"):
        await node(seen(node), writer=Scripted("Ha: old bridge over the river was closed for all"))


OPENED = 'openings = ["Compare", "Explain why"]\nexamples = [["A?", "Compare {tone}."]]\n' + RAP


async def test_openings_are_asked_for_by_schema_and_shown_in_the_examples(write: Write) -> None:
    node = load(write, OPENED)
    model = Scripted('{"reply": "Compare the bridge with the ferry."}')
    made = await node(seen(node), writer=model)
    assert dict(made)["text"] == "Compare the bridge with the ferry."
    assert model.asked[0][2].content == '{"reply": "Compare warm."}'
    schema = model.params[0]["schema"]
    assert schema == opened_by(("Compare", "Explain why"))
    pattern = json.loads(json.dumps(schema))["properties"]["reply"]["pattern"]
    assert re.search(pattern, "Explain why the old bridge is closed.")
    assert not re.search(pattern, "Explain why. It is closed for good.")


async def test_openings_are_read_from_a_code_fence_and_can_be_written(write: Write) -> None:
    node = load(write, OPENED)
    fenced = '```json\n{"reply": "Compare half a \\ud83d with the ferry."}\n```'
    made = await node(seen(node), writer=Scripted(fenced))
    assert dict(made)["text"] == "Compare half a \ufffd with the ferry."


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("Compare the bridge with the ferry.", "not the JSON asked for: 'Compare the bridge"),
        ('{"reply": 1}', "not the JSON asked for"),
        ('{"reply": "Compare it all.", "more": 1}', "not the JSON asked for"),
        ('{"reply": "Compare a.", "reply": "Compare b."}', "not the JSON asked for"),
        ('{"reply": ' * 10_000, "not the JSON asked for"),
        ('{"reply": "The bridge is old."}', "opens otherwise: 'The bridge is old.'"),
        ('{"reply": "Compared with the ferry."}', "opens otherwise"),
        (cut('{"reply": "Compare the bri'), "reply cut at max_tokens"),
    ],
)
async def test_a_reply_that_opens_otherwise_is_unmet(write: Write, reply: str, said: str) -> None:
    node = load(write, OPENED)
    with pytest.raises(Unmet) as caught:
        await node(seen(node), writer=Scripted(reply))
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("One. Two! Thr", "One. Two!"),
        ('He said "no." And th', 'He said "no."'),
        ("a line\nanother li", "a line"),
        ("Is it 3.5 or", ""),
        ("", ""),
        ("一。二", "一。"),
        ("- one.\n- tw", "- one."),
        ("1. Cut it.\n12. And", "1. Cut it."),
        ("It was 1995. And", "It was 1995."),
        ("Whole.", "Whole."),
    ],
)
def test_whole_sentences_end_at_the_last_stop_or_line(text: str, whole: str) -> None:
    assert whole_sentences(text) == whole


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (swapped('role = "writer"\n', ""), "nodes/rap.toml: 'role' is missing. It has: append,"),
        (
            swapped("{passage}\\n", "{passge}\\n"),
            "nodes/rap.toml prompt: {passge} is neither a precondition nor a text of this table; "
            "did you mean 'passage'? Allowed here: count, name, passage, style, tone, variant",
        ),
        (
            swapped("{passage}\\n", "{critique}\\n"),
            "nodes/rap.toml prompt: {critique} is an optional field; use it in append.critique.",
        ),
        (
            swapped("{passage}\\n", "{draft}\\n"),
            "nodes/rap.toml prompt: {draft} is neither a precondition nor a text",
        ),
        (swapped("{reply}", "{repl}"), "nodes/rap.toml writes.text: {repl} is neither a precondi"),
        (swapped("{tone} rap", "{style} rap"), "nodes/rap.toml system: these keys name each other"),
        (swapped("{style}.", "{style"), "nodes/rap.toml system: a lone '{' at '{style'"),
        (
            swapped("append.critique", "append.passage"),
            "nodes/rap.toml append.passage: 'passage' is no optional precondition",
        ),
        (
            swapped("writes.text", "writes.txt"),
            "nodes/rap.toml writes.txt: is not promised; did you mean 'text'? Promised: form, text",
        ),
        (
            swapped('writes.text = "{reply}"\n', ""),
            "nodes/rap.toml postconditions.text: is promised, but nothing writes it; add "
            "writes.text = '{reply}'",
        ),
        (
            swapped("writes.text", "writes.form"),
            "nodes/rap.toml writes.form: is 'rap' by its postcondition already",
        ),
        (
            swapped(
                'text = { type = "str", min_len = 3, max_len = 60 }', "text = { type = 'int' }"
            ),
            "nodes/rap.toml postconditions.text: a prompt writes text only; write this node in Pyt",
        ),
        ('unquoted = ["pasage"]\n' + RAP, "nodes/rap.toml unquoted: 'pasage' is no precondition"),
        (
            'truncated = "cut"\n' + RAP,
            "nodes/rap.toml truncated: 'cut' is not one of allow, refuse",
        ),
        ('writes_truncated = "x"\n' + RAP, "nodes/rap.toml writes_truncated: needs a promised fie"),
        (
            'openings = ["(a"]\n' + RAP,
            "nodes/rap.toml openings: '(a' is no beginning of a sentence",
        ),
        (
            'truncated = "trim"\nopenings = ["A"]\n' + RAP,
            "nodes/rap.toml truncated: a reply with op",
        ),
        ('examples = ["x"]\n' + RAP, "nodes/rap.toml examples: needs pairs of texts"),
        ('examples = [["{x}", ""]]\n' + RAP, "nodes/rap.toml examples: {x} is neither a precond"),
        (
            "max_token = 9\n" + RAP,
            "nodes/rap.toml max_token: there is no such key of a prompt node",
        ),
        (swapped("top_p = 0.9", "top_p = 1.5"), "nodes/rap.toml top_p: must be at least"),
        (
            RAP + 'preconditions.copy = { type = "str" }\n',
            "nodes/rap.toml: rap takes: 'copy' cannot be a field",
        ),
        (
            RAP.replace("{count}", "{parts}") + 'preconditions.parts = { type = "list[str]" }\n',
            "nodes/rap.toml prompt: {parts} is neither text nor number; only a Python node can",
        ),
        (
            swapped('"writer"', '"tone"'),
            "nodes/rap.toml role: 'tone' is a setting of this node; gi",
        ),
        ('passage = "x"\n' + RAP, "nodes/rap.toml passage: {passage} is a field of the record alr"),
        ('reply = "x"\n' + RAP, "nodes/rap.toml reply: {reply} is settled by the loader already"),
    ],
)
def test_a_faulty_table_is_refused_by_file_and_key(write: Write, text: str, said: str) -> None:
    with pytest.raises(LibraryError) as caught:
        load(write, text)
    assert str(caught.value).startswith(said)
