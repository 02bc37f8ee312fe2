from __future__ import annotations

import math

import pytest

from dataforge.verifiers.verdict import Status, Verdict


@pytest.mark.parametrize("score", [0.0, 0.5, 1.0, 1, 0])
def test_a_score_lies_from_0_to_1(score: float) -> None:
    verdict = Verdict("pass", score, scores={"style": score, "tone": None})
    assert verdict.score == score


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, -0.01, 1.01, 5])
def test_any_other_score_is_refused_by_name(score: float) -> None:
    with pytest.raises(ValueError, match=r"a verdict's score must lie in \[0, 1\], and is"):
        Verdict("pass", score)
    with pytest.raises(ValueError, match=r"a verdict's style must lie in \[0, 1\], and is"):
        Verdict("pass", 1.0, scores={"style": score})


@pytest.mark.parametrize(
    ("status", "score"), [("pass", None), ("fail", None), ("undecided", 0.5), ("error", 0.0)]
)
def test_only_a_conclusion_has_a_score(status: Status, score: float | None) -> None:
    with pytest.raises(ValueError, match="cannot have score"):
        Verdict(status, score)
