"""Finding nodes: their names, their files, and what a faulty file is told."""

from __future__ import annotations

import sys

import pytest

from dataforge.errors import DataForgeError, DuplicateName, LibraryError
from dataforge.library.nodes import load_nodes
from dataforge.library.root import Library
from tests.library.scene import Write

HAIKU = 'role = "writer"\nprompt = "{passage} {style}"\nstyle = "a haiku"\n' + (
    'writes.text = "{reply}"\n'
    'preconditions.passage = { type = "str" }\n'
    'postconditions.text = { type = "str" }\n'
)
TABLES = HAIKU.replace("role", "[shared]\nrole").replace('style = "a haiku"\n', "")
PYTHON = '''
from __future__ import annotations
from typing import Annotated
from annotated_types import MinLen
from dataforge import Struct, node

class Passage(Struct):
    passage: Annotated[str, MinLen(5)]

class Text(Struct):
    text: str

@node
async def haiku(seen: Passage) -> Text:
    """Shouts."""
    return Text(text=seen.passage.upper())

@node(tags=["short"])
async def couplet(seen: Passage, *, lines: int = 2) -> Text:
    """Shouts twice."""
    return Text(text=seen.passage.upper() * lines)

also = haiku
_private = couplet.renamed("hidden")
'''


def refusal(library: Library) -> str:
    with pytest.raises(DataForgeError) as caught:
        load_nodes(library)
    return str(caught.value)


def test_a_node_is_named_after_its_path_and_then_itself_where_they_differ(write: Write) -> None:
    library = write(
        {
            "nodes/transform.toml": TABLES + '[rap]\nstyle = "a rap"\n[song]\nstyle = "a song"\n',
            "nodes/transform/haiku.toml": HAIKU,
            "nodes/verse/haiku.py": PYTHON,
            "nodes/ask.toml": TABLES + '[variant.far]\n[variant.near]\n[ask]\nstyle = "x"\n',
            "nodes/.hidden.toml": "broken",
            "nodes/__pycache__/x.py": "broken",
        }
    )
    assert list(load_nodes(library)) == [
        "ask/far/ask",
        "ask/near/ask",
        "transform/haiku",
        "transform/rap",
        "transform/song",
        "verse/haiku",
        "verse/haiku/couplet",
    ]


def test_a_table_named_like_its_file_is_not_named_twice(write: Write) -> None:
    library = write({"nodes/rap.toml": TABLES + '[rap]\nstyle = "a rap"\n'})
    assert list(load_nodes(library)) == ["rap"]


async def test_a_python_node_runs_and_keeps_what_its_decorator_said(write: Write) -> None:
    nodes = load_nodes(write({"nodes/haiku.py": PYTHON}))
    couplet = nodes["haiku/couplet"]
    made = await couplet(couplet.takes.model_validate({"passage": "words"}))
    assert dict(made) == {"text": "WORDSWORDS"}
    assert couplet.tags == {"short"}
    assert couplet.settings == {"lines": 2}


FAMILY = """
from dataclasses import dataclass
from typing import Literal

from dataforge import Message, Model, Struct, node

FORMS = ("haiku", "ode")

class Passage(Struct):
    passage: str

class Text(Struct):
    text: str
    form: Literal["haiku", "ode"]

@dataclass(frozen=True)
class Retell:
    form: Literal["haiku", "ode"]

    async def __call__(self, seen: Passage, *, writer: Model) -> Text:
        reply = await writer.chat([Message("user", f"{self.form}: {seen.passage}")])
        return Text(text=reply.text, form=self.form)

nodes = [node(Retell(form), name=form, promises={"form": form}) for form in FORMS]

@node
def count(seen: Text) -> Passage:
    return Passage(passage=seen.text)

listed = {"again": count}
"""


def test_a_family_made_in_a_loop_is_found_in_its_list_under_readable_names(write: Write) -> None:
    nodes = load_nodes(write({"nodes/retell.py": FAMILY}))
    assert list(nodes) == ["retell/count", "retell/haiku", "retell/ode"]
    assert nodes["retell/ode"].digest != nodes["retell/haiku"].digest
    assert str(nodes["retell/ode"].postconditions["form"]) != str(
        nodes["retell/haiku"].postconditions["form"]
    )


LOST = [
    pytest.param(
        "for form in FORMS:\n    node(Retell(form), name=form)\n",
        *(35, "haiku"),
        id="a loop that keeps none",
    ),
    pytest.param(
        "for form in FORMS:\n    poem = node(Retell(form), name=form)\n",
        *(35, "haiku"),
        id="a loop that keeps the last",
    ),
    pytest.param(
        "for form in FORMS:\n    poem = node(name=form)(count.run).renamed('x')\n",
        *(35, "haiku"),
        id="a loop over one function",
    ),
    pytest.param(
        "def made():\n    return {'all': [node(Retell('ode'), name='ode')]}\nodes = made()\n",
        *(35, "ode"),
        id="too deep",
    ),
    pytest.param(
        "@node\ndef count(seen: Text) -> Passage:\n    raise NotImplementedError\n",
        *(26, "count"),
        id="a second of the same name",
    ),
]


@pytest.mark.parametrize(("more", "line", "name"), LOST)
def test_a_node_that_a_file_makes_and_loses_is_refused_with_the_line_of_its_making(
    write: Write, more: str, line: int, name: str
) -> None:
    text = FAMILY.replace('listed = {"again": count}\n', "\n\n\n\n" + more)
    assert refusal(write({"nodes/retell.py": text})) == (
        f"nodes/retell.py:{line}: no name holds the node {name!r}; give it one of its own, or put "
        "those made in a loop in a list: nodes = [node(…) for … in …]"
    )


async def test_what_a_name_holds_in_any_form_is_not_lost(write: Write) -> None:
    text = FAMILY + (
        "long = node(Retell('ode'), name='x').renamed('long').weighted(2)\n"
        "_own = node(Retell('ode'), name='own')\n"
        "_more = [node(Retell('ode'), name='more')]\n"
        "@node\n"
        "def within(seen: Text) -> Passage:\n"
        "    return Passage(passage=node(Retell('ode'), name='later').name)\n"
    )
    nodes = load_nodes(write({"nodes/retell.py": text}))
    names = [name.removeprefix("retell/") for name in nodes]
    assert names == ["count", "haiku", "long", "ode", "within"]
    within = nodes["retell/within"]
    made = await within(within.takes.model_validate({"text": "x", "form": "ode"}))
    assert dict(made) == {"passage": "later"}


def test_two_of_one_name_in_a_family_are_refused_naming_the_file_once(write: Write) -> None:
    text = FAMILY.replace("name=form,", 'name="poem",')
    assert refusal(write({"nodes/retell.py": text})) == (
        "two nodes are named 'retell/poem': in nodes/retell.py:24; rename one of them"
    )


def test_content_modules_live_under_a_name_of_their_own(write: Write) -> None:
    load_nodes(write({"nodes/verse/hai-ku.py": PYTHON}))
    assert "dataforge_library.mine.nodes.verse.hai_ku" in sys.modules
    assert not {"nodes", "nodes.verse", "hai-ku"} & sys.modules.keys()


def test_loading_leaves_nothing_behind_in_the_library(write: Write) -> None:
    library = write({"nodes/haiku.py": PYTHON})
    load_nodes(library)
    assert [path.name for path in (library.root / "nodes").iterdir()] == ["haiku.py"]


def test_a_file_edited_between_loads_is_read_anew(write: Write) -> None:
    before = load_nodes(write({"nodes/haiku.py": PYTHON}))["haiku"]
    after = load_nodes(write({"nodes/haiku.py": PYTHON.replace("upper", "lower")}))["haiku"]
    assert before.digest != after.digest


def test_the_digest_of_a_prompt_node_follows_what_it_says_and_not_how(write: Write) -> None:
    one = load_nodes(write({"nodes/haiku.toml": HAIKU}))["haiku"].digest
    assert load_nodes(write({"nodes/haiku.toml": "# why\n" + HAIKU}))["haiku"].digest == one
    other = HAIKU.replace("{passage} {style}", "{style} {passage}")
    assert load_nodes(write({"nodes/haiku.toml": other}))["haiku"].digest != one


def test_the_upper_library_wins_by_name(
    write: Write, tmp_path_factory: pytest.TempPathFactory
) -> None:
    below = tmp_path_factory.mktemp("below")
    (below / "nodes").mkdir()
    (below / "nodes" / "haiku.toml").write_text(HAIKU)
    (below / "nodes" / "ode.toml").write_text(HAIKU)
    upper = write({"nodes/haiku.toml": HAIKU.replace("a haiku", "mine")})
    nodes = load_nodes(Library("upper", upper.root, Library("below", below)))
    assert nodes["haiku"].settings["style"] == "mine"
    assert nodes["ode"].settings["style"] == "a haiku"


def test_two_nodes_of_one_name_in_a_library_are_refused_naming_both_files(write: Write) -> None:
    library = write({"nodes/haiku.toml": HAIKU, "nodes/haiku.py": PYTHON})
    with pytest.raises(DuplicateName) as caught:
        load_nodes(library)
    assert str(caught.value) == (
        "two nodes are named 'haiku': one in nodes/haiku.py:13 and one in nodes/haiku.toml; rename "
        "one of them"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def broken(:\n", "nodes/x.py:1: does not load: SyntaxError: invalid syntax"),
        ("\nimport no_such_thing\n", "nodes/x.py:2: imports 'no_such_thing', which is not install"),
        ("\n\n1 / 0\n", "nodes/x.py:3: does not load: ZeroDivisionError: division by zero"),
        ("X = 1\n", "nodes/x.py: defines no node; mark a function with @node"),
        (
            PYTHON.replace('-> Text:\n    """Shouts.', '-> str:\n    """Shouts.'),
            "nodes/x.py:13: node 'haiku': the return type is <class 'str'>; it must be a subclass",
        ),
        (
            PYTHON.replace("    text: str", "    text: str | int"),
            "nodes/x.py:11: field 'text' of Text: cannot read str | int: one type a field",
        ),
        (
            FAMILY.replace('name=form, promises={"form": form}', ""),
            "nodes/x.py:24: node of a Retell: an object has no name of its own; write node(",
        ),
        (
            FAMILY.replace('promises={"form": form}', 'promises={"form": "epic"}'),
            "nodes/x.py:24: node of a Retell: field 'form' of Text is one of 'haiku', 'ode', so it",
        ),
        (
            PYTHON.replace("lines: int = 2", 'lines: int = "many"'),
            "nodes/x.py:18: node 'couplet': setting 'lines' is 'many': Input should be a valid int",
        ),
        ("assert not True\n", "nodes/x.py:1: does not load: AssertionError"),
        ("import sys\nsys.exit()\n", "nodes/x.py:2: does not load: SystemExit"),
        ("raise ValueError('a\\nb')\n", "nodes/x.py:1: does not load: ValueError: a b"),
        (
            PYTHON + 'Passage(passage="x", other=1)\n',
            "nodes/x.py:25: does not load: ValidationError: Passage: passage: String should have "
            "at least 5 characters; other: Extra inputs are not permitted",
        ),
    ],
)
def test_a_python_file_that_does_not_load_is_named_with_its_line(
    write: Write, text: str, said: str
) -> None:
    refused = refusal(write({"nodes/x.py": text}))
    assert refused.startswith(said)
    assert "\n" not in refused


def test_a_file_with_a_space_in_its_name_is_named_once(write: Write) -> None:
    library = write({"nodes/my poem.py": PYTHON.replace("    text: str", "    text: str | int")})
    assert refusal(library).startswith("nodes/my poem.py:11: field 'text' of Text: cannot read")


def test_a_file_of_another_encoding_is_told_so_with_the_line_of_the_byte(write: Write) -> None:
    library = write({"nodes/x.py": ""})
    text = b"# coding: latin-1\n\n# \xe9\n" + PYTHON.encode()
    (library.root / "nodes" / "x.py").write_bytes(text)
    assert refusal(library) == (
        "nodes/x.py:3: does not load: SyntaxError: byte 0xe9 is not UTF-8; save the file as UTF-8"
    )


def test_a_syntax_error_in_an_imported_file_is_not_taken_for_one_of_this_file(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = write(
        {"nodes/x.py": "\nimport broken_helper\n", "lib/broken_helper.py": "\n\nx = (\n"}
    )
    monkeypatch.syspath_prepend(library.root / "lib")
    assert refusal(library) == (
        "nodes/x.py:2: does not load: SyntaxError: '(' was never closed (lib/broken_helper.py:3)"
    )


def test_a_file_that_does_not_load_leaves_the_former_module_in_place(write: Write) -> None:
    load_nodes(write({"nodes/x.py": PYTHON}))
    former = sys.modules["dataforge_library.mine.nodes.x"]
    refusal(write({"nodes/x.py": "1 / 0\n"}))
    assert sys.modules["dataforge_library.mine.nodes.x"] is former


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('attempts = 2\n[rap]\nprompt = "x"\n', "nodes/x.toml attempts: stands outside any table"),
        (
            '[shared]\nrole = "w"\n',
            "nodes/x.toml: holds no node; a node is a table such as [haiku]",
        ),
        ("", "nodes/x.toml: holds no node"),
        (
            TABLES + '[variant.near]\n[rap]\nstyle = "x"\nvariants = ["neer"]\n',
            "nodes/x.toml [rap] variants: 'neer' is no variant of this file; did you mean 'near'? "
            "There are: near",
        ),
    ],
)
def test_a_toml_file_that_makes_no_sense_is_told_so(write: Write, text: str, said: str) -> None:
    assert refusal(write({"nodes/x.toml": text})).startswith(said)


def test_variants_lie_between_the_shared_table_and_the_node(write: Write) -> None:
    nodes = load_nodes(
        write(
            {
                "nodes/ask.toml": TABLES
                + '[variant.near]\ntemperature = 0.1\ntop_p = 0.5\nstyle = "near"\n'
                + '[variant.far]\nprompt = "{passage} {variant} {style}"\n'
                + '[one]\nstyle = "one"\ntop_p = 0.7\n'
                + '[two]\nstyle = "two"\nvariants = ["far"]\n'
            }
        )
    )
    assert list(nodes) == ["ask/far/one", "ask/far/two", "ask/near/one"]
    assert nodes["ask/near/one"].settings == {
        "temperature": 0.1,
        "top_p": 0.7,
        "max_tokens": 512,
        "style": "one",
    }


@pytest.mark.parametrize(
    ("table", "word"), [("[rap]\n", "promt"), ("[shared]\n", "sytem"), ("[variant.v]\n", "sytle")]
)
def test_a_text_that_no_template_names_is_refused_as_likely_misspelt(
    write: Write, table: str, word: str
) -> None:
    text = TABLES + '[variant.v]\n[rap]\nstyle = "x"\n'
    library = write({"nodes/x.toml": text.replace(table, f'{table}{word} = "oops"\n', 1)})
    assert refusal(library).startswith(
        f"nodes/x.toml {table.strip()} {word}: is no key of a prompt node and no template names it"
    )


def test_a_library_error_is_wrong_usage() -> None:
    assert LibraryError.exit_code == 2


@pytest.mark.parametrize("name", ["*", "tag:x", "a?b", "a\\nb"])
def test_a_name_that_no_graph_could_mean_is_refused_naming_the_file(
    write: Write, name: str
) -> None:
    table = HAIKU.replace("[shared]", "").strip()
    said = refusal(write({"nodes/poems.toml": f'["{name}"]\n{table}\n'}))
    assert said.startswith("nodes/poems.toml [")
    assert "is no name for a node" in said
    assert "a name is of letters, digits, spaces" in said
    python = PYTHON.replace("@node", f'@node(name="{name}")')
    said = refusal(write({"nodes/poems.toml": HAIKU, "nodes/count.py": python}))
    assert said.startswith("nodes/count.py:")
    assert "is no name for a node" in said
