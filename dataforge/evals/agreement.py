"""How well a judge agrees with labels: AUC for each kind of fault, and what the gate lets through.

AUC is the chance that the judge scores a good answer above a faulty one (ties count half), exact
over all pairs of the two. Its interval treats answers as independent; answers to one instruction
are not quite, so it is a little too narrow. An undecided verdict ranks below every score, since it
never passes a gate. Any `Judge` is measured the same way, in code or by a language model. This
measures; it tunes nothing.
"""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dataforge.evals.pairs import FAULTS, Fault, Pair
from dataforge.models.judge import Case, Judge, Rubric
from dataforge.verifiers.verdict import Verdict

__all__ = [
    "INTERVAL",
    "Against",
    "Agreement",
    "Judged",
    "agreement",
    "auc",
    "auc_interval",
    "bare_rubric",
    "criterion_aucs",
    "judge_pairs",
]

INTERVAL = "95 %, Newcombe 2006 (Statistics in Medicine 25:559), method 5, by inversion"
"""How `auc_interval` is made."""
_UNSCORED = -1.0


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair and what the judge said of it."""

    pair: Pair
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """How well a judge tells good answers from those with one kind of fault."""

    n: int
    """Answers with this fault."""
    auc: float
    """In [0, 1]; 0.5 is chance."""
    low: float
    high: float
    """The interval of `auc`; see `INTERVAL`."""
    accepted: float
    """Share of these answers that the judge passes, in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How well a judge agrees with a set of labelled pairs."""

    good: int
    """Good answers."""
    good_accepted: float
    """Share of the good answers that the judge passes, in [0, 1]."""
    undecided: int
    """Answers without a score: verdicts `undecided` or `error`."""
    against: Mapping[Fault, Against]
    """Fault -> how well it is told, for every fault that occurs."""
    among: Mapping[str, Against]
    """The same for parts of each fault, named `FAULT, MODE` (beside good answers of that mode) and
    `FAULT, ORIGIN` (beside all good answers)."""


def bare_rubric(pass_mark: float = 0.6, floor: float = 0.4) -> Rubric:
    """A rubric for judges in code, which read only the criteria's names and the marks."""
    criteria = dict.fromkeys(("coherence", "relevance", "complexity", "style", "tone"), "")
    return Rubric(
        name="bare", criteria=criteria, system="", prompt="", pass_mark=pass_mark, floor=floor
    )


async def judge_pairs(
    judge: Judge, rubric: Rubric, pairs: Sequence[Pair], at_once: int = 1
) -> tuple[Judged, ...]:
    """The judge's verdict on every pair, in order, with at most `at_once` (>= 1) in flight."""
    gate = asyncio.Semaphore(at_once)

    async def one(pair: Pair) -> Judged:
        async with gate:
            case = Case(instruction=pair.instruction, answer=pair.answer)
            return Judged(pair, await judge.judge(case, rubric))

    return tuple(await asyncio.gather(*map(one, pairs)))


def agreement(judged: Sequence[Judged]) -> Agreement:
    """How well the verdicts agree with the labels; ValueError without a good answer."""
    good = [each.verdict for each in judged if each.pair.kind == "good"]
    if not good:
        raise ValueError("no pair is labelled good, so there is nothing to tell faults from")
    return Agreement(
        good=len(good),
        good_accepted=_passed(good),
        undecided=sum(each.verdict.score is None for each in judged),
        against={
            fault: _against(good, bad)
            for fault in FAULTS
            if (bad := [each.verdict for each in judged if each.pair.kind == fault])
        },
        among=_among(judged),
    )


def criterion_aucs(judged: Sequence[Judged]) -> dict[str, dict[Fault, float]]:
    """Criterion -> fault -> AUC of that criterion's score alone, for criteria ever scored."""
    names = {
        name for each in judged for name, score in each.verdict.scores.items() if score is not None
    }
    return {name: _aucs(judged, name) for name in sorted(names)}


def auc(better: Sequence[float], worse: Sequence[float]) -> float:
    """Chance that one of `better` exceeds one of `worse`, ties half; both must hold something."""
    if not better or not worse:
        raise ValueError("AUC needs at least one score on each side")
    ordered = sorted(worse)
    wins = sum(bisect_left(ordered, score) + bisect_right(ordered, score) for score in better)
    return wins / (2 * len(better) * len(worse))


def auc_interval(value: float, m: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """The interval of an AUC over `m` good and `n` bad answers; open-minded even at 0 and 1."""
    return _edge(value, m, n, z, 0.0), _edge(value, m, n, z, 1.0)


def _edge(value: float, m: int, n: int, z: float, outside: float) -> float:
    """The AUC farthest towards `outside` that `value` does not rule out, by bisection."""
    inside = value
    for _ in range(60):
        middle = (inside + outside) / 2
        if abs(middle - value) <= z * math.sqrt(_variance(middle, m, n)):
            inside = middle
        else:
            outside = middle
    return inside


def _variance(value: float, m: int, n: int) -> float:
    """Hanley and McNeil's variance of an AUC with both group sizes set to their mean."""
    mean = (m + n) / 2
    shape = 2 * mean - 1 - (3 * mean - 3) / ((2 - value) * (1 + value))
    return max(0.0, value * (1 - value) * shape / (m * n))


def _against(good: Sequence[Verdict], bad: Sequence[Verdict]) -> Against:
    value = auc([_rank(v.score) for v in good], [_rank(v.score) for v in bad])
    low, high = auc_interval(value, len(good), len(bad))
    return Against(n=len(bad), auc=value, low=low, high=high, accepted=_passed(bad))


def _among(judged: Sequence[Judged]) -> dict[str, Against]:
    good = [each for each in judged if each.pair.kind == "good"]
    same_mode: dict[str, list[Verdict]] = {}
    for each in good:
        same_mode.setdefault(each.pair.mode, []).append(each.verdict)
    parts: dict[str, tuple[list[Verdict], list[Verdict]]] = {}
    for each in sorted(judged, key=lambda each: (each.pair.mode, each.pair.origin)):
        kind, mode, origin = each.pair.kind, each.pair.mode, each.pair.origin
        if kind != "good":
            beside = [each.verdict for each in good]
            parts.setdefault(f"{kind}, {origin}", (beside, []))[1].append(each.verdict)
            if mode in same_mode:
                parts.setdefault(f"{kind}, {mode}", (same_mode[mode], []))[1].append(each.verdict)
    return {name: _against(*sides) for name, sides in sorted(parts.items())}


def _aucs(judged: Sequence[Judged], criterion: str) -> dict[Fault, float]:
    ranks: dict[str, list[float]] = {}
    for each in judged:
        score = each.verdict.scores.get(criterion)
        ranks.setdefault(each.pair.kind, []).append(_rank(score))
    return {fault: auc(ranks["good"], ranks[fault]) for fault in FAULTS if fault in ranks}


def _rank(score: float | None) -> float:
    return _UNSCORED if score is None else score


def _passed(verdicts: Sequence[Verdict]) -> float:
    return sum(verdict.status == "pass" for verdict in verdicts) / len(verdicts)
