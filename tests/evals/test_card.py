from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

import pytest

from dataforge.errors import InputError
from dataforge.evals.agreement import bare_rubric
from dataforge.evals.card import (
    Alternative,
    Card,
    load_card,
    measure,
    remeasure,
    say_card,
    stale,
    write_card,
)
from dataforge.evals.pairs import FAULTS, Kind, Pair, split_of
from dataforge.models.judge import Case, Rubric
from dataforge.verifiers.verdict import Verdict


class Lengthy:
    """Judges an answer by its length."""

    __dataforge_role__: ClassVar[str] = "judge"

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        score = min(1.0, len(case.answer) / 10)
        return Verdict("pass" if score >= rubric.pass_mark else "fail", score, {"length": score})


def pairs() -> list[Pair]:
    kinds: tuple[Kind, ...] = ("good", *FAULTS)
    return [
        Pair(
            instruction=instruction,
            answer="x" * (9 if kind == "good" else 2),
            kind=kind,
            split=split_of(instruction),
            mode="standalone",
            origin="written",
        )
        for instruction in map(str, range(8))
        for kind in kinds
    ]


@pytest.fixture
def judge_file(tmp_path: Path) -> Path:
    file = tmp_path / "lengthy.py"
    file.write_text("# a judge\n")
    lines = "".join(pair.model_dump_json() + "\n" for pair in pairs())
    file.with_name("lengthy.pairs.jsonl").write_text(lines)
    return file


def measured(file: Path) -> Card:
    other = Alternative(name="a coin", how="chance", auc=dict.fromkeys(FAULTS, 0.5))
    measuring = measure(
        Lengthy(),
        bare_rubric(),
        file,
        "no weights",
        alternatives=[other],
        notes=["It cannot tell truth."],
    )
    return asyncio.run(measuring)[0]


def test_a_card_is_read_as_it_was_written(judge_file: Path) -> None:
    card = measured(judge_file)
    write_card(card, judge_file)
    again = load_card(judge_file)
    assert again is not None
    assert write_card(again, judge_file).read_text() == write_card(card, judge_file).read_text()
    assert stale(again, judge_file) == ()


def test_the_test_split_is_reported_apart_from_all_pairs(judge_file: Path) -> None:
    card = measured(judge_file)
    tests = sum(pair.split == "test" and pair.kind == "good" for pair in pairs())
    assert (card.test.good, card.all.good) == (tests, 8)
    assert 0 < tests < 8


def test_the_judges_own_criteria_stand_among_the_alternatives(judge_file: Path) -> None:
    card = measured(judge_file)
    assert [other.name for other in card.alternatives] == ["length alone", "a coin"]


def test_measuring_anew_keeps_the_notes_and_the_other_ways_to_judge(judge_file: Path) -> None:
    before = measured(judge_file)
    write_card(before, judge_file)
    judge_file.write_text("# another judge\n")
    after = asyncio.run(remeasure(Lengthy(), bare_rubric(), judge_file, "no weights"))
    assert (after.notes, after.alternatives) == (before.notes, before.alternatives)
    assert stale(before, judge_file) == ("lengthy.py",)
    assert stale(after, judge_file) == ()
    assert load_card(judge_file) is not None


@pytest.mark.parametrize("changed", ["lengthy.py", "lengthy.pairs.jsonl"])
def test_a_changed_judge_or_pair_makes_the_card_stale(judge_file: Path, changed: str) -> None:
    card = measured(judge_file)
    path = judge_file.with_name(changed)
    path.write_text(path.read_text() + "\n")
    assert stale(card, judge_file) == (changed,)
    assert f"STALE: changed since it was measured: {changed}" in say_card(card, (changed,))


def test_other_line_endings_do_not_make_a_card_stale(judge_file: Path) -> None:
    card = measured(judge_file)
    judge_file.write_bytes(judge_file.read_bytes().replace(b"\n", b"\r\n"))
    assert stale(card, judge_file) == ()


def test_a_card_is_told_in_a_line_a_fault_and_its_notes(judge_file: Path) -> None:
    card = measured(judge_file)
    told = say_card(card)
    assert told.startswith("Agreement of judge lengthy with labelled pairs")
    assert all(f"\n{fault}" in told for fault in FAULTS)
    assert told.endswith("It cannot tell truth.")
    assert "a coin" not in told
    assert "a coin" in say_card(card, detail=True)


def test_a_judge_without_a_card_says_so(judge_file: Path) -> None:
    assert load_card(judge_file) is None
    assert "has not been measured" in say_card(None)


def test_an_unreadable_card_is_refused_by_name(judge_file: Path) -> None:
    judge_file.with_name("lengthy.card.json").write_text('{"judge": 1}')
    with pytest.raises(InputError, match=r"lengthy\.card\.json: not an agreement card"):
        load_card(judge_file)
