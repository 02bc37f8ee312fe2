from __future__ import annotations

import math
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.evals.agreement import (
    Judged,
    agreement,
    auc,
    auc_interval,
    bare_rubric,
    criterion_aucs,
    judge_pairs,
)
from dataforge.evals.pairs import Kind, Pair, split_of
from dataforge.models.judge import Case, Rubric
from dataforge.verifiers.verdict import Verdict

few = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=12)


def pair(answer: str, kind: Kind) -> Pair:
    return Pair(
        instruction="Count.",
        answer=answer,
        kind=kind,
        split=split_of("Count."),
        mode="standalone",
        origin="written",
    )


class Lengthy:
    """Judges an answer by its length, and cannot make up its mind about question marks."""

    __dataforge_role__: ClassVar[str] = "judge"

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        if "?" in case.answer:
            return Verdict("undecided")
        score = min(1.0, len(case.answer) / 10)
        passed = score >= rubric.pass_mark
        return Verdict("pass" if passed else "fail", score, {"length": score, "tone": None})


@given(few, few)
def test_auc_counts_every_couple_and_half_for_ties(better: list[float], worse: list[float]) -> None:
    wins = sum((a > b) + (a == b) / 2 for a in better for b in worse)
    assert auc(better, worse) == pytest.approx(wins / len(better) / len(worse))


@given(few, few)
def test_auc_of_the_sides_exchanged_adds_up_to_one(better: list[float], worse: list[float]) -> None:
    assert auc(better, worse) + auc(worse, better) == pytest.approx(1)


@given(few, few)
def test_auc_depends_on_order_alone(better: list[float], worse: list[float]) -> None:
    assert auc(better, worse) == auc([math.exp(a) for a in better], [math.exp(b) for b in worse])


def test_auc_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one score on each side"):
        auc([], [1.0])


@given(st.floats(0, 1), st.integers(1, 300), st.integers(1, 300))
def test_an_interval_holds_its_value_and_stays_in_bounds(value: float, m: int, n: int) -> None:
    low, high = auc_interval(value, m, n)
    assert 0 <= low <= value <= high <= 1


@given(st.floats(0.05, 0.95), st.integers(5, 100))
def test_more_answers_make_a_narrower_interval(value: float, n: int) -> None:
    few_low, few_high = auc_interval(value, n, n)
    many_low, many_high = auc_interval(value, 2 * n, 2 * n)
    assert many_high - many_low < few_high - few_low


def test_the_edges_solve_the_equation_they_are_defined_by() -> None:
    value, m, n = 0.9, 40, 50
    mean = (m + n) / 2
    for edge in auc_interval(value, m, n):
        first, second = edge / (2 - edge), 2 * edge**2 / (1 + edge)
        spread = edge * (1 - edge) + (mean - 1) * (first + second - 2 * edge**2)
        # Hanley and McNeil 1982, formula 1, with both sizes replaced by their mean but the divisor.
        assert abs(edge - value) == pytest.approx(1.959964 * math.sqrt(spread / (m * n)))


def test_a_perfect_score_on_few_answers_is_not_taken_for_certain() -> None:
    assert auc_interval(1.0, 40, 40)[0] < 0.99


async def test_agreement_tells_each_fault_apart() -> None:
    pairs = [
        *(pair("x" * 9, "good"), pair("x" * 7, "good")),
        *(pair("x" * 8, "wrong"), pair("x" * 2, "irrelevant"), pair("x" * 3, "irrelevant")),
    ]
    found = agreement(await judge_pairs(Lengthy(), bare_rubric(), pairs, at_once=3))
    assert (found.good, found.good_accepted, found.undecided) == (2, 1.0, 0)
    assert set(found.against) == {"irrelevant", "wrong"}
    assert (found.against["irrelevant"].auc, found.against["irrelevant"].accepted) == (1.0, 0.0)
    assert (found.against["wrong"].auc, found.against["wrong"].accepted) == (0.5, 1.0)
    assert set(found.among) == {
        *("irrelevant, standalone", "irrelevant, written", "wrong, standalone", "wrong, written")
    }


async def test_an_undecided_verdict_ranks_lowest_and_is_never_accepted() -> None:
    pairs = [pair("what?", "good"), pair("x" * 9, "good"), pair("", "wrong")]
    found = agreement(await judge_pairs(Lengthy(), bare_rubric(), pairs))
    assert (found.undecided, found.good_accepted) == (1, 0.5)
    assert found.against["wrong"].auc == 0.5


async def test_verdicts_come_in_the_order_of_the_pairs() -> None:
    pairs = [pair("x" * size, "good") for size in range(5)]
    judged = await judge_pairs(Lengthy(), bare_rubric(), pairs, at_once=2)
    assert [each.pair for each in judged] == pairs


async def test_only_criteria_that_were_ever_scored_are_measured_alone() -> None:
    judged = await judge_pairs(
        Lengthy(), bare_rubric(), [pair("x" * 9, "good"), pair("", "truncated")]
    )
    assert criterion_aucs(judged) == {"length": {"truncated": 1.0}}


def test_pairs_without_a_good_answer_are_refused() -> None:
    with pytest.raises(ValueError, match="nothing to tell faults from"):
        agreement([Judged(pair("x", "wrong"), Verdict("fail", 0.0))])
