from __future__ import annotations

from pathlib import Path

import pytest

from dataforge.errors import UnknownModel
from dataforge.models.key import find_key, is_at
from dataforge.models.specs import open_model

USUAL = ("FIRST_KEY", "SECOND_KEY")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*USUAL, "MY_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_the_first_of_the_usual_variables_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_key(None, None, USUAL).value == ""
    monkeypatch.setenv("SECOND_KEY", "two")
    assert find_key(None, None, USUAL).value == "two"
    monkeypatch.setenv("FIRST_KEY", " one\n")
    assert find_key(None, None, USUAL).value == "one"


def test_a_file_holds_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "key").write_text("\n planted-key \r\n")
    key = find_key(None, "~/key", USUAL)
    assert key.value == "planted-key"
    assert "planted" not in repr(key)
    assert key.hidden("is planted-key, no?") == "is ***, no?"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"planted\nkey", "more than a key"),
        (b"planted key", "more than a key"),
        (b"planted\x00key", "more than a key"),
        ("plantéd".encode(), "more than a key"),
        (b"planted\xff", "not a text"),
        (b"planted" * 10_000, "too long"),
    ],
)
def test_a_file_that_holds_none_is_refused_and_not_shown(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    for spec in ("http://h/v1#m", "anthropic:claude-x"):
        with pytest.raises(UnknownModel, match=said) as caught:
            open_model(f"{spec}?key_file={file}")
        assert "plant" not in str(caught.value)
        assert "key_file=" in str(caught.value)


def test_a_folder_is_no_key(tmp_path: Path) -> None:
    with pytest.raises(UnknownModel, match="cannot be read"):
        find_key(None, str(tmp_path), USUAL)


def test_a_variable_that_could_forge_a_header_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "planted\r\nX-Other: 1")
    with pytest.raises(UnknownModel, match="MY_KEY: holds more than a key") as caught:
        find_key("MY_KEY", None, USUAL)
    assert "plant" not in str(caught.value)


def test_only_one_of_two_places_can_be_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownModel, match="one of the two"):
        find_key("MY_KEY", str(tmp_path), USUAL)


@pytest.mark.parametrize(
    ("url", "belongs"),
    [
        ("https://openai.com/v1", True),
        ("https://api.openai.com./v1", True),
        ("https://API.OpenAI.com", True),
        ("https://evilopenai.com", False),
        ("https://openai.com.evil.org", False),
        ("https://evil.org/openai.com", False),
    ],
)
def test_a_key_belongs_to_a_domain_and_what_is_under_it(url: str, belongs: bool) -> None:
    assert is_at(url, "openai.com") is belongs
