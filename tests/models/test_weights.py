from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from dataforge.models.weights import declared_weights, file_weights, served_weights


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dataforge" / "weights.json"


def test_provider_and_letter_case_do_not_make_other_weights() -> None:
    names = (
        "gpt-4o-mini",
        "openai/gpt-4o-mini",
        "openrouter/openai/GPT-4o-mini",
        "/m/gpt-4o-mini/",
    )
    assert {served_weights(name) for name in names} == {"served:gpt-4o-mini"}
    assert served_weights("gpt-4o") != served_weights("gpt-4o-mini")


def test_a_tag_or_an_ending_does_not_make_other_weights() -> None:
    names = ("llama3", "llama3:free", "meta/Llama3:latest", "llama3:8b", "/m/llama3.gguf")
    assert {served_weights(name) for name in names} == {"served:llama3"}
    assert served_weights("llama-3.1") == "served:llama-3.1"
    assert served_weights(":free") != served_weights(":latest") != "served:"


def test_a_declared_identity_may_be_a_name_or_a_hash() -> None:
    assert declared_weights("Qwen/Qwen3-8B") == served_weights("qwen3-8b")
    assert declared_weights("sha256:abc") == declared_weights(" SHA256:ABC ") == "sha256:abc"
    assert declared_weights("served:Qwen3-8B:free") == served_weights("qwen3-8b")


def test_a_file_is_known_by_its_content_under_any_path(tmp_path: Path) -> None:
    one, other, third = (tmp_path / name for name in ("a.gguf", "b.gguf", "c.gguf"))
    one.write_bytes(b"weights")
    other.write_bytes(b"weights")
    third.write_bytes(b"others")
    assert file_weights(one) == f"sha256:{sha256(b'weights').hexdigest()}"
    assert file_weights(one) == file_weights(other) != file_weights(third)


def test_a_hash_is_remembered_until_the_file_changes(tmp_path: Path, cache: Path) -> None:
    file = tmp_path / "a.gguf"
    file.write_bytes(b"before")
    before = file_weights(file)
    assert before.removeprefix("sha256:") in cache.read_text()
    assert file_weights(file) == before
    file.write_bytes(b"after!")
    os.utime(file, ns=(1, 1))
    assert file_weights(file) == f"sha256:{sha256(b'after!').hexdigest()}"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"a": 1}', "\x00"])
def test_a_damaged_memory_is_made_again(tmp_path: Path, cache: Path, damage: str) -> None:
    file = tmp_path / "a.gguf"
    file.write_bytes(b"weights")
    cache.parent.mkdir(parents=True)
    cache.write_text(damage)
    assert file_weights(file) == file_weights(file) == f"sha256:{sha256(b'weights').hexdigest()}"
    assert sha256(b"weights").hexdigest() in cache.read_text()


def test_a_memory_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    file.write_bytes(b"weights")
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert file_weights(file) == f"sha256:{sha256(b'weights').hexdigest()}"
