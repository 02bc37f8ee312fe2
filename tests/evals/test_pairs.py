from __future__ import annotations

import json
from pathlib import Path

import pytest

from dataforge.errors import InputError
from dataforge.evals.pairs import read_pairs, split_of

PAIR = {
    "instruction": "Name a bird.",
    "answer": "A wren.",
    "kind": "good",
    "split": split_of("Name a bird."),
    "mode": "standalone",
    "origin": "written",
}


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_pairs_are_read_in_order(tmp_path: Path) -> None:
    other = PAIR | {"answer": "A stone.", "kind": "wrong"}
    path = written(tmp_path / "p.jsonl", json.dumps(PAIR), "", json.dumps(other))
    assert [(pair.answer, pair.kind) for pair in read_pairs(path)] == [
        ("A wren.", "good"),
        ("A stone.", "wrong"),
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "bad"}, "kind: Input should be"),
        ({"extra": 1}, "extra: Extra inputs are not permitted"),
        ({"answer": 3}, "answer: Input should be a valid string"),
    ],
)
def test_a_malformed_line_is_named_with_its_field(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    path = written(tmp_path / "p.jsonl", json.dumps(PAIR), json.dumps(PAIR | change))
    with pytest.raises(InputError, match=rf"p\.jsonl:2: not a labelled pair: {said}"):
        read_pairs(path)


def test_a_split_that_is_not_the_hash_of_its_instruction_is_refused(tmp_path: Path) -> None:
    wrong = {"dev": "test", "test": "dev"}[str(PAIR["split"])]
    path = written(tmp_path / "p.jsonl", json.dumps(PAIR | {"split": wrong}))
    with pytest.raises(InputError, match="the hash of its instruction says"):
        read_pairs(path)


def test_a_file_without_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no labelled pair"):
        read_pairs(written(tmp_path / "p.jsonl", ""))
    with pytest.raises(InputError, match="cannot be read"):
        read_pairs(tmp_path / "none.jsonl")
