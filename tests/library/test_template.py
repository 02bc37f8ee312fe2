"""Templates: what is replaced, what stays, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.errors import LibraryError
from dataforge.library.template import Template


def filled(text: str, **values: object) -> str:
    return Template.parse(text, "here").fill(values)


def test_holes_are_filled_and_doubled_braces_are_literal() -> None:
    assert filled("{a} and {b_2}: {{a}} {{}} }}{{", a="x", b_2=7) == "x and 7: {a} {} }{"


def test_a_filled_in_value_is_never_read_again() -> None:
    assert filled("{a}{b}", a="{b}", b="{{c}}") == "{b}{{c}}"


@pytest.mark.parametrize(
    "text",
    [
        "{a.b}",
        "{a[0]}",
        "{a!r}",
        "{a:>9}",
        "{}",
        "{0}",
        "{a b}",
        "{ a }",
        "a } b",
        "{a",
        "{{a}",
        "{é}",
    ],
)
def test_anything_but_a_plain_name_in_braces_is_refused(text: str) -> None:
    with pytest.raises(LibraryError, match=r"^here: a lone '[{}]' at '.+'; a hole is written"):
        Template.parse(text, "here")


def test_templates_go_into_templates_at_any_depth() -> None:
    given = {
        "style": Template.parse("{tone} prose about {topic}", "x"),
        "tone": Template.parse("warm {{}}", "x"),
    }
    inlined = Template.parse("Write {style}, {tone}.", "x").inlined(given, "x")
    assert inlined.names == {"topic"}
    assert inlined.fill({"topic": "{tone}"}) == "Write warm {} prose about {tone}, warm {}."


def test_templates_that_name_each_other_in_a_circle_are_refused() -> None:
    given = {"a": Template.parse("{b}", "x"), "b": Template.parse("{a}", "x")}
    with pytest.raises(LibraryError, match="these keys name each other in a circle: b -> a -> b"):
        Template.parse("{b}", "x").inlined(given, "x")


@given(st.text())
def test_any_text_with_its_braces_doubled_stays_as_it_is(text: str) -> None:
    assert filled(text.replace("{", "{{").replace("}", "}}")) == text


@given(st.text(alphabet="{}ab_ .\n"))
def test_a_text_is_either_refused_or_filled_whole(text: str) -> None:
    try:
        template = Template.parse(text, "x")
    except LibraryError:
        return
    assert template.fill(dict.fromkeys(template.names, "")).count("{") <= text.count("{") // 2
