"""A store of seeds gives back what was put in, from a copy or from its source."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.errors import InputError
from dataforge.library.seeds import read_seeds
from dataforge.run.seed import Seed, SeedStore

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
SEEDS = st.lists(
    st.builds(Seed, TEXT, TEXT, st.dictionaries(TEXT, TEXT, max_size=2)),
    max_size=20,
    unique_by=lambda seed: seed.id,
)


@given(SEEDS)
def test_seeds_come_back_as_they_were_and_in_order(seeds: list[Seed]) -> None:
    store = SeedStore.of("", seeds)
    assert len(store) == len(seeds)
    assert list(store) == seeds
    assert list(store.ids()) == [seed.id for seed in seeds]
    assert [store.find(seed.id) for seed in seeds] == seeds
    assert store.find("no such id") is None


@given(SEEDS, SEEDS)
def test_the_digest_tells_apart_all_that_is_known_of_seeds(
    one: list[Seed], two: list[Seed]
) -> None:
    told = [SeedStore.of("", seeds).digest for seeds in (one, two)]
    assert (told[0] == told[1]) == (one == two)


@given(st.lists(st.sampled_from(["a b", "A  b", "a\nB ", "ab", "", "c"]), max_size=9))
def test_the_twin_of_a_seed_is_the_first_with_its_passage(passages: list[str]) -> None:
    store = SeedStore.of("", [Seed(str(n), text) for n, text in enumerate(passages)])
    folded = [" ".join(text.split()).casefold() for text in passages]
    for number, text in enumerate(folded):
        first = folded.index(text)
        assert store.twin(number) == (None if first == number else str(first))


def changed(path: Path, store: SeedStore) -> str:
    with pytest.raises(InputError) as caught:
        list(store)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_file_that_changes_while_it_is_used_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": f"words {n}"}) + "\n" for n in range(3)))
    store = read_seeds(path).seeds
    path.write_text(path.read_text().replace("words 1", "verse 1"))
    assert "seed 'a:2' is no longer where it was" in changed(path, store)
    path.write_text("")
    assert "seed 'a:1' is no longer where it was" in changed(path, store)
    path.unlink()
    assert "seed 'a:1' is no longer where it was" in changed(path, store)


def test_a_folder_that_changes_while_it_is_used_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    store = read_seeds(tmp_path).seeds
    (tmp_path / "a.txt").write_text("two")
    assert "seed 'a.txt' is no longer where it was" in changed(tmp_path, store)


@pytest.mark.parametrize("change", [str.upper, lambda line: line.replace("1900", "1901")])
def test_a_change_of_case_or_of_a_field_beside_the_passage_is_found_out_too(
    tmp_path: Path, change: Callable[[str], str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"TEXT": "words", "YEAR": 1900}\n{"TEXT": "verse", "YEAR": 1900}\n')
    store = read_seeds(path, "TEXT").seeds
    path.write_text(change(path.read_text()))
    assert "seed 'a:1' is no longer where it was" in changed(path, store)
