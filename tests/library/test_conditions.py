"""Conditions as data mean what the same conditions mean as annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from annotated_types import Ge, Le, MaxLen, MinLen

from dataforge.errors import DataForgeError
from dataforge.library.conditions import read_conditions
from dataforge.library.tables import read_table
from dataforge.library.template import Template
from dataforge.plan.annotation import read_shape
from dataforge.plan.shape import Conditions

WORDS = {"name": Template.parse("rap", "x"), "kind": Template.parse("{name} song", "x")}


def read(tmp_path: Path, text: str) -> Conditions:
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    return read_conditions(read_table(path), WORDS)


@pytest.mark.parametrize(
    ("text", "annotation"),
    [
        ('"rap"', Literal["rap"]),
        ('["a", "b"]', Literal["a", "b"]),
        ("true", Literal[True]),
        ("[1, 2]", Literal[1, 2]),
        ('"{kind}"', Literal["rap song"]),
        ('{ type = "str" }', str),
        ('{ type = "str", min_len = 5, max_len = 9 }', Annotated[str, MinLen(5), MaxLen(9)]),
        ('{ type = "float", ge = 0, le = 1 }', Annotated[float, Ge(0), Le(1)]),
        ('{ type = "int", ge = 3, optional = true }', Annotated[int, Ge(3)] | None),
        ('{ choices = ["a"], optional = true }', Literal["a"] | None),
        ('{ type = "bool" }', bool),
        ('{ type = "list[str]", min_len = 1 }', Annotated[list[str], MinLen(1)]),
    ],
)
def test_a_condition_is_the_shape_of_the_annotation_it_spells(
    tmp_path: Path, text: str, annotation: object
) -> None:
    assert read(tmp_path, f"f = {text}\n") == {"f": read_shape(annotation, "f")}


def test_an_absent_field_has_no_shape(tmp_path: Path) -> None:
    assert read(tmp_path, "f = { absent = true }\n") == {"f": None}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("f = 1.5", "f: 1.5 is no condition; write a text or a list of texts for choices"),
        ("f = []", "f: [] is no condition"),
        ("f = 'str'", "f: 'str' would be that very text; for any str write { type = 'str' }"),
        ("f = { min_len = 3 }", "f.type: a condition needs type, choices or absent"),
        ("f = { type = 'string' }", "f.type: 'string' is no type here; did you mean 'str'?"),
        ("f = { type = 'str', minlen = 3 }", "f.minlen: there is no such key of a condition; did"),
        ("f = { absent = true, type = 'str' }", "f.absent: an absent field has no other condit"),
        ("f = { absent = 1 }", "f.absent: needs true or false, not 1"),
        ("f = { choices = [1], type = 'list' }", "f.type: choices are of type str, int or bool"),
        ("f = { type = 'str', min_len = 9, max_len = 3 }", "f can never be met: no value is"),
        ("f = { type = 'int', min_len = 3 }", "f: "),
        ("f = '{nam}'", "f: names {nam}, which is not known when the file is loaded; did you mean"),
        ('"a b" = "x"', "a b: is no field name; use letters, digits and underscores"),
    ],
)
def test_a_condition_that_cannot_be_read_is_refused_by_its_key(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(DataForgeError) as caught:
        read(tmp_path, text)
    assert f"{tmp_path / 'x.toml'} {said}" in str(caught.value)
