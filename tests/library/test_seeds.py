"""Reading seeds: what is taken, what is skipped and listed, what is refused."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.errors import InputError
from dataforge.library.seeds import read_seeds

CASES = Path(__file__).parents[3] / "shared" / "cases" / "webtext"


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def refusal(path: Path, field: str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read_seeds(path, field)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.jsonl.gz", "a.json.gz"])
def test_json_lines_are_read_plain_or_gzipped(tmp_path: Path, name: str) -> None:
    body = b'{"id": "x", "passage": "one"}\n\n{"text": "other", "passage": "two", "n": 3}\n'
    path = tmp_path / name
    path.write_bytes(gzip.compress(body) if name.endswith(".gz") else body)
    read = read_seeds(path)
    assert [(seed.id, seed.passage) for seed in read.seeds] == [("x", "one"), ("a:3", "two")]
    assert read.seeds[1].meta == {"text": "other", "n": "3"}
    assert (read.skipped, read.field) == ((), "passage")


@pytest.mark.parametrize("field", ["passage", "text", "content"])
def test_the_usual_fields_are_found_without_being_named(tmp_path: Path, field: str) -> None:
    read = read_seeds(lines(tmp_path / "a.jsonl", {"title": "t", field: "words"}))
    assert read.field == field
    assert read.seeds[0].passage == "words"


def test_the_field_found_first_holds_for_the_whole_file(tmp_path: Path) -> None:
    read = read_seeds(lines(tmp_path / "a.jsonl", {"text": "one"}, {"passage": "two"}))
    assert [seed.passage for seed in read.seeds] == ["one"]
    assert str(read.skipped[0]) == f"{tmp_path / 'a.jsonl'}:2: has no field 'text'"


def test_a_malformed_line_is_skipped_and_listed_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b'{"text": "good"}\n'
        b'{"text": "cut\n'
        b"[1, 2]\n"
        b'"words"\n'
        b'{"other": 1}\n'
        b'{"text": 7}\n'
        b'{"text": null}\n'
        b'{"text": "  "}\n'
        b'{"text": "caf\xe9"}\n'
        b'{"text": "half \\ud83d"}\n'
        b'{"text": "also good"}\n'
    )
    read = read_seeds(path)
    assert [seed.id for seed in read.seeds] == ["a:1", "a:11"]
    reasons = {entry.where.rpartition(":")[2]: entry.reason for entry in read.skipped}
    assert reasons == {
        "2": "is not JSON: Unterminated string starting, column 10",
        "3": "is a list, not a JSON object",
        "4": "is a text, not a JSON object",
        "5": "has no field 'text'",
        "6": "field 'text' is a number, not a text",
        "7": "field 'text' is null, not a text",
        "8": "field 'text' is blank",
        "9": "is not UTF-8 at byte 14",
        "10": "field 'text' holds half a character (a lone surrogate)",
    }


def test_hostile_json_is_a_skipped_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    deep = "[" * 100_000
    path.write_text(f'{{"text": "good"}}\n{{"a": {deep}\n{{"a": {"9" * 5000}}}\n')
    read = read_seeds(path)
    assert [entry.where for entry in read.skipped] == [f"{path}:2", f"{path}:3"]


def test_a_byte_order_mark_is_no_part_of_the_first_record(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": "good"}\r\n{"text": "too"}\r\n')
    assert [seed.passage for seed in read_seeds(path).seeds] == ["good", "too"]


def test_a_line_separator_inside_a_passage_ends_no_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one\u2028two\x85three"}\n', encoding="utf-8")
    assert read_seeds(path).seeds[0].passage == "one\u2028two\x85three"


def test_a_wrong_field_name_is_refused_with_the_fields_there_are(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"id": 1, "body": "x"}, {"id": 2, "body": "y"})
    assert refusal(path, "bodi") == (
        f"{path}: no record has a field 'bodi'; did you mean 'body'? Fields found: id, body. "
        f"Name the one that holds the passage with --field NAME"
    )
    assert "no record has passage or text or content. Fields found: id, body." in refusal(path)


def test_what_cannot_be_read_at_all_is_refused_in_one_line(tmp_path: Path) -> None:
    assert "there is no such file or folder" in refusal(tmp_path / "gone.jsonl")
    (tmp_path / "empty.jsonl").touch()
    assert "is empty" in refusal(tmp_path / "empty.jsonl")
    (tmp_path / "blank.jsonl").write_text("\n \n")
    assert "is empty" in refusal(tmp_path / "blank.jsonl")
    (tmp_path / "table.csv").write_text("a,b\n")
    assert ".csv is no kind of seeds known here; give .jsonl" in refusal(tmp_path / "table.csv")
    (tmp_path / "wide.jsonl").write_bytes('{"text": "x"}'.encode("utf-16"))
    assert "is UTF-16; convert it: iconv" in refusal(tmp_path / "wide.jsonl")
    (tmp_path / "none").mkdir()
    assert "holds no .txt or .md file" in refusal(tmp_path / "none")
    (tmp_path / "array.json").write_text(json.dumps([{"text": "x"}], indent=1))
    message = refusal(tmp_path / "array.json")
    assert f"the first {tmp_path / 'array.json'}:1: is not JSON" in message
    assert message.endswith("the file needs one whole JSON object on each line")


def test_corrupt_gzip_is_refused_at_the_line_where_it_breaks(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b'{"text": "%d"}\n' % number for number in range(50_000)))
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    assert "the gzip data is corrupt or cut off here" in refusal(cut)
    torn = tmp_path / "torn.jsonl.gz"
    torn.write_bytes(whole[:200] + b"\0" * 200 + whole[400:])
    assert "the gzip data is corrupt or cut off here" in refusal(torn)
    plain = tmp_path / "plain.jsonl.gz"
    plain.write_text('{"text": "x"}\n')
    assert "is not gzip, though its name ends in .gz" in refusal(plain)


def test_gzip_without_the_name_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(gzip.compress(b'{"text": "x"}\n'))
    assert read_seeds(path).seeds[0].id == "a:1"


def test_parquet_is_read_by_its_plain_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame(
        {"id": ["x", None], "text": ["one", "two"], "tags": [["a"], ["b"]], "n": [1, 2]}
    ).write_parquet(path)
    read = read_seeds(path)
    assert [(seed.id, seed.passage, seed.meta) for seed in read.seeds] == [
        ("x", "one", {"n": "1"}),
        ("a:2", "two", {"n": "2"}),
    ]
    assert "Fields found: id, text, tags, n." in refusal(path, "txt")
    assert "the column 'tags' is of type List(String), not text" in refusal(path, "tags")
    assert "field 'n' is a number, not a text" in refusal(path, "n")


def test_a_null_in_parquet_is_a_skipped_row(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"text": ["one", None]}).write_parquet(path)
    assert str(read_seeds(path).skipped[0]) == f"{path}: row 2: field 'text' is null, not a text"


def test_corrupt_or_empty_parquet_is_refused(tmp_path: Path) -> None:
    good = tmp_path / "a.parquet"
    pl.DataFrame({"text": ["some words"] * 100}).write_parquet(good)
    raw = good.read_bytes()
    for name, bytes_ in {"cut": raw[: len(raw) // 2], "torn": b"PAR1" + b"\xff" * 40}.items():
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(bytes_)
        assert "is no Parquet file that can be read" in refusal(path)
    (tmp_path / "void.parquet").touch()
    assert "is empty" in refusal(tmp_path / "void.parquet")
    pl.DataFrame({"text": []}, schema={"text": pl.String}).write_parquet(tmp_path / "no.parquet")
    assert "is empty" in refusal(tmp_path / "no.parquet")


def test_a_folder_of_texts_is_read_by_path_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "z.md").write_text("deep")
    (tmp_path / "a.txt").write_text("top")
    (tmp_path / "a.md").write_text("beside")
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\xfd"[2:] + b"\xe9")
    (tmp_path / "ignored.csv").write_text("x")
    read = read_seeds(tmp_path)
    assert [(seed.id, seed.passage) for seed in read.seeds] == [
        ("a.md", "beside"),
        ("a.txt", "top"),
        ("b/z.md", "deep"),
    ]
    assert str(read.skipped[0]) == f"{tmp_path / 'bad.txt'}: is not UTF-8 at byte 1"
    assert read_seeds(tmp_path / "a.txt").seeds[0].id == "a.txt"
    assert "texts have no field 'x'; leave --field out" in refusal(tmp_path, "x")


def test_a_name_on_disk_that_is_no_text_costs_no_seed(tmp_path: Path) -> None:
    for name, text in ((b"\xff.txt", "one"), (b"\xfe.txt", "two"), (b"\xfd.txt", b"\xff")):
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    read = read_seeds(tmp_path)
    assert sorted(seed.passage for seed in read.seeds) == ["one", "two"]
    told = [*read.seeds.ids(), *map(str, read.skipped)]
    assert [each.encode().decode() for each in told] == told
    odd = lines(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xfc.jsonl")), {"text": "a"}, {"b": 1})
    read = read_seeds(odd)
    told = [*read.seeds.ids(), *map(str, read.skipped)]
    assert [each.encode().decode() for each in told] == told


def test_what_can_be_read_only_once_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert "is no file that can be read twice" in refusal(tmp_path / "pipe.jsonl")


def test_a_taken_id_is_made_its_own_and_a_true_repeat_is_skipped(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.jsonl",
        {"id": "x", "text": "one"},
        {"id": "x", "text": "two"},
        {"id": "x", "text": "one"},
        {"id": 5, "text": "three"},
        {"id": [1], "text": "four"},
        {"text": "one"},
    )
    read = read_seeds(path)
    assert [seed.id for seed in read.seeds] == ["x", "x@2", "5", "a:5", "a:6"]
    assert str(read.skipped[0]) == f"{path}:3: repeats the id 'x' with the same passage"


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b", "a@2", "f:3"]), st.sampled_from("xyz"))))
def test_ids_are_unique_and_the_same_each_time(pairs: list[tuple[str, str]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = lines(
            Path(folder) / "f.jsonl", {"text": "s"}, *({"id": i, "text": t} for i, t in pairs)
        )
        first, second = read_seeds(path), read_seeds(path)
        assert list(first.seeds) == list(second.seeds)
    ids = list(first.seeds.ids())
    assert len(set(ids)) == len(ids)
    assert first.skipped == second.skipped
    assert first.seeds.digest == second.seeds.digest
    assert len(first.seeds) + len(first.skipped) == len(pairs) + 1


def test_the_digest_tells_other_passages_apart(tmp_path: Path) -> None:
    one = read_seeds(lines(tmp_path / "a.jsonl", {"id": "ab", "text": "c"}))
    two = read_seeds(lines(tmp_path / "a.jsonl", {"id": "a", "text": "bc"}))
    assert one.seeds.digest != two.seeds.digest


@pytest.mark.parametrize(
    "name",
    [
        "cc_en_head-0091.jsonl.gz",
        "cc_en_head-0174.jsonl.gz",
        "dolma_provided_documents_000.json.gz",
    ],
)
def test_real_web_pages_are_read(name: str) -> None:
    if not CASES.is_dir():
        pytest.skip("the shared cases are not on this machine")
    read = read_seeds(CASES / name)
    assert (len(read.seeds), read.skipped, read.field) == (10, (), "text")
    assert all(seed.id.startswith("http") for seed in read.seeds)


def test_reading_many_says_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text("".join(f'{{"text": "words {n}"}}\n' for n in range(200_001)))
    told: list[int] = []
    read_seeds(path, tell=told.append)
    assert told == [100_000, 200_000]
