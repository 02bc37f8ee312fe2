"""Content tables: what each complaint names, above all the table a merged key came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataforge.errors import LibraryError
from dataforge.library.tables import Table, nearest, read_table

MERGED = """
[shared]
temperature = 0.5
preconditions.passage = { type = "str", min_len = 500 }
preconditions.draft = { absent = true }
tags = ["a"]

[one]
preconditions.passage.min_len = 10
preconditions.draft = { type = "str" }
tags = ["b"]
"""


def table(tmp_path: Path, text: str) -> Table:
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    return read_table(path)


def merged(tmp_path: Path) -> Table:
    top = table(tmp_path, MERGED)
    return top.own_table("one").over(top.own_table("shared"))


def test_tables_are_merged_key_by_key_and_lists_replaced(tmp_path: Path) -> None:
    assert merged(tmp_path).values == {
        "temperature": 0.5,
        "preconditions": {"passage": {"type": "str", "min_len": 10}, "draft": {"type": "str"}},
        "tags": ["b"],
    }


def test_a_complaint_names_the_table_in_which_the_key_was_written(tmp_path: Path) -> None:
    whole = merged(tmp_path)
    file = tmp_path / "x.toml"
    assert whole.where("temperature") == f"{file} [shared] temperature"
    assert whole.where("tags") == f"{file} [one] tags"
    passage = whole.table("preconditions").table("passage")
    assert passage.where("type") == f"{file} [shared] preconditions.passage.type"
    assert passage.where("min_len") == f"{file} [one] preconditions.passage.min_len"
    assert whole.table("preconditions").where("draft") == f"{file} [one] preconditions.draft"


def test_merging_again_keeps_where_each_key_came_from(tmp_path: Path) -> None:
    top = table(tmp_path, "[shared]\na = 1\nb = 1\nc = 1\n[variant.v]\nb = 2\nc = 2\n[t]\nc = 3\n")
    variant = top.table("variant").own_table("v", "variant.v").over(top.own_table("shared"))
    whole = top.own_table("t").over(variant)
    assert whole.values == {"a": 1, "b": 2, "c": 3}
    assert [whole.where(key).split(" ")[1] for key in "abc"] == ["[shared]", "[variant.v]", "[t]"]


def test_a_path_is_shown_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = table(tmp_path, "a = 1\n")
    monkeypatch.chdir(tmp_path)
    assert top.where("a") == "x.toml a"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1", "x.toml a: needs text, not 1"),
        ("a = true", "x.toml a: needs text, not True"),
        ("b = 1", "x.toml: 'a' is missing. It has: b"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(LibraryError) as caught:
        table(tmp_path, text).text("a")
    assert str(caught.value).endswith(said)


def test_numbers_keep_their_limits_and_true_is_no_number(tmp_path: Path) -> None:
    top = table(tmp_path, "yes = true\nbig = 9.5\nless = -1\npart = 1.5\n")
    with pytest.raises(LibraryError, match="needs a number, not True"):
        top.number("yes", 1.0)
    with pytest.raises(LibraryError, match=r"must be at least 0 and at most 5, not 9\.5"):
        top.number("big", 1.0, high=5.0)
    with pytest.raises(LibraryError, match="must be a whole number from 1 to 9, not -1"):
        top.whole("less", 1, high=9)
    with pytest.raises(LibraryError, match=r"needs a whole number, not 1\.5"):
        top.whole("part", 1)


def test_an_unknown_key_is_refused_with_the_nearest_and_all_that_are_allowed(
    tmp_path: Path,
) -> None:
    with pytest.raises(LibraryError) as caught:
        table(tmp_path, "[loop]\nat_mots = 3\n").own_table("loop").known(
            "at_most", "body", of="a loop"
        )
    assert str(caught.value) == (
        f"{tmp_path / 'x.toml'} [loop] at_mots: there is no such key of a loop; did you mean "
        f"'at_most'? Allowed: at_most, body"
    )


def test_a_file_that_is_no_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(LibraryError, match=r"x\.toml: is not TOML: .*line 2"):
        table(tmp_path, "a = 1\nb = \n")
    (tmp_path / "y.toml").write_bytes(b"a = '\xe9'\n")
    with pytest.raises(LibraryError, match=r"y\.toml: is not UTF-8 at byte 5; save it as UTF-8"):
        read_table(tmp_path / "y.toml")
    with pytest.raises(LibraryError, match=r"z\.toml: cannot be read: No such file"):
        read_table(tmp_path / "z.toml")


def test_the_same_content_has_one_canonical_text(tmp_path: Path) -> None:
    one = table(tmp_path, "b = 1\na = 'é'\n").canonical()
    assert table(tmp_path, 'a = "é" # said\nb = 1\n').canonical() == one


def test_the_nearest_name_may_be_the_last_part_of_one() -> None:
    assert nearest("haiku", {"transform/haiku", "x"}) == "; did you mean 'transform/haiku'?"
    assert nearest("zzz", {"transform/haiku"}) == "."
