"""A role's spec names one endpoint, several of one model, or a file that lists them."""

from __future__ import annotations

import fcntl
import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.errors import DataForgeError, InputError, UnknownModel, UsageError
from dataforge.models.pool import address_of, read_pool
from dataforge.models.specs import read_spec
from dataforge.models.workers import add_worker, read_workers, remove_worker

A, B = "http://a:8000/v1#qwen", "http://b:8000/v1#qwen?share=2"


def test_one_spec_of_any_form_is_one_endpoint() -> None:
    for spec in ("embedded", A, "openai/gpt-4o-mini", "gguf:/a folder/with spaces.gguf"):
        assert read_pool(spec).specs == (spec,)


def test_several_endpoints_of_one_model_stand_apart_by_spaces() -> None:
    assert read_pool(f" {A}  {B} {A} ").specs == (A, B)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (f"{A} http://b/v1#llama", "serves served:llama, and http://a:8000/v1#qwen served:qwen"),
        (f"{A} http://b/v1", "name the model after a #"),
        (f"{A} embedded", "'embedded' is no endpoint"),
        ("http://a/v1#m?share=0", "share=0 must be a number above 0"),
        ("http://a/v1#m?share=nan", "share=nan must be a number above 0"),
    ],
)
def test_what_is_no_spec_or_another_model_is_one_line(spec: str, said: str) -> None:
    with pytest.raises(UnknownModel, match=said) as caught:
        for each in read_pool(spec).specs:
            assert read_spec(each).share
    assert "\n" not in str(caught.value)


def test_aliases_at_one_address_share_its_limit_and_shares_are_read() -> None:
    assert address_of("http://A:8000/v1/#one") == address_of("http://a:8000/v1#two?limit=3")
    assert address_of("http://a:8000/v1#one") != address_of("http://a:8001/v1#one")
    assert (read_spec(A).share, read_spec(B).share) == (1.0, 2.0)


def test_a_file_of_workers_is_read_in_order_and_once_each(tmp_path: Path) -> None:
    file = tmp_path / "workers.txt"
    file.write_text(f"# ours\n\n  {A}\n{B}\n{A}\n")
    assert read_pool(f"workers:{file}").specs == (A, B)
    assert read_pool(f"workers:{file}").file == file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "lists no worker yet; `dataforge workers add URL --file"),
        (f"{A}\nembedded\n", r":2: embedded: a worker is an endpoint"),
        (f"{A}\nhttp://b/v1#llama\n", r":2: http://b/v1#llama serves served:llama"),
        (f"{A}\nhttp://b/v1\n", r":2: .*name the model after a #"),
        (f"{A}\n{A}?share=-1\n", r":2: .*share=-1 must be a number above 0"),
        (f"{A}\n{A}?limit=many\n", r":2: .*limit=many must be a whole number"),
    ],
)
def test_a_file_of_workers_that_is_wrong_names_the_line(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "workers.txt"
    file.write_text(text)
    with pytest.raises(DataForgeError, match=said):
        read_pool(f"workers:{file}")


def test_a_file_that_is_not_there_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`dataforge workers add URL --file"):
        read_pool(f"workers:{tmp_path / 'none.txt'}")


def test_workers_are_added_once_and_removed_by_spec_or_address(tmp_path: Path) -> None:
    file = tmp_path / "workers.txt"
    assert add_worker(file, A)
    assert not add_worker(file, A)
    assert add_worker(file, B)
    with pytest.raises(UsageError, match=r"say so with \?weights=NAME"):
        add_worker(file, "http://c/v1#other")
    assert add_worker(file, "http://c/v1#other?weights=qwen")
    assert remove_worker(file, "http://b:8000/v1")
    assert not remove_worker(file, "http://b:8000/v1")
    assert remove_worker(file, A)
    assert read_workers(file) == ("http://c/v1#other?weights=qwen",)


def test_comments_outlive_changes(tmp_path: Path) -> None:
    file = tmp_path / "workers.txt"
    file.write_text(f"# rack 1\n{A}\n# rack 2\n")
    add_worker(file, B)
    remove_worker(file, A)
    assert file.read_text() == f"# rack 1\n# rack 2\n{B}\n"


SPECS = [f"http://host{n}/v1#m" for n in range(5)]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(SPECS)), max_size=15))
def test_a_file_of_workers_is_an_ordered_set(changes: list[tuple[bool, str]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file, model = Path(folder) / "w", dict[str, None]()
        file.touch()
        for add, spec in changes:
            if add:
                assert add_worker(file, spec) == (spec not in model)
                model[spec] = None
            else:
                assert remove_worker(file, spec) == (spec in model)
                model.pop(spec, None)
            assert read_workers(file) == tuple(model)


def add_many(file: str, rack: int) -> None:
    for number in range(20):
        add_worker(Path(file), f"http://rack{rack}-{number}/v1#m")


def test_many_who_add_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "workers.txt"
    context = multiprocessing.get_context("spawn")
    adding = [context.Process(target=add_many, args=(str(file), rack)) for rack in range(3)]
    for process in adding:
        process.start()
    for process in adding:
        process.join()
    assert len(read_workers(file)) == 60


def test_a_file_that_another_process_holds_is_told_of_and_not_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "workers.txt"
    add_worker(file, A)
    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="is held by another process; try again"):
            read_workers(file)
    assert read_workers(file) == (A,)
