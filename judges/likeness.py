"""The judge for machines without a second language model: does the answer look like one?

It reads by measuring. Relevance is the cosine of sentence embeddings between the answer and the
instruction, its request or the best-matching stretch of its text; coherence is what the checks for
repetition and truncation leave; echoing the instruction costs relevance. Its weights are none of a
chat model's, so it may judge any of them, and it costs milliseconds. It cannot tell truth: a false
answer on the subject looks like a good one, and so does one that does another task than asked or
answers a neighbouring question in the same words. Complexity, style and tone it leaves unmarked.
How far to trust it is measured on `likeness.pairs.jsonl` and stored in `likeness.card.json`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from dataforge.models.embedding import MINILM_WEIGHTS, Embedder
from dataforge.models.judge import Case, Judge, Rubric
from dataforge.verifiers.echo import Echo, echo
from dataforge.verifiers.repetition import Repetition, repetition
from dataforge.verifiers.truncation import Truncation, truncation
from dataforge.verifiers.verdict import Verdict
from dataforge.verifiers.words import sentences, words

WEIGHTS = MINILM_WEIGHTS
"""Identity of the weights it judges with: all-MiniLM-L6-v2."""
VERIFIER = "likeness/1 (all-minilm-l6-v2)"

PASS = 0.6
"""A rubric's usual pass mark. The limits below were chosen on the `dev` half of the pairs so that
it falls between good and faulty answers."""
COSINE = 0.4
"""Likeness that just passes; marks are in proportion."""
REPETITION = (0.2, 0.3)
DOUBT = (0.2, 0.4)
ECHO = (0.6, 0.8)
"""Share of repeated text, doubt that the end is there, share copied from the instruction: how much
costs nothing, and how much just passes."""
ECHO_WORDS = 12
"""A shorter answer may consist of the instruction's own words."""
ECHO_COVER = 0.3
"""A quotation of less of the instruction than this is no echo."""
CHUNK_WORDS = 90
"""Words of a passage embedded at a time; the model reads no more than 256 tokens."""


def open_judge() -> Judge:
    """The judge, ready at once; its embedding model is loaded by the first case."""
    return LikenessJudge(Embedder())


@dataclass(frozen=True, slots=True)
class _Measured:
    """What was found out about one case."""

    cosine: float
    echo: Echo
    repetition: Repetition
    truncation: Truncation

    @property
    def likeness(self) -> float:
        return min(1.0, PASS * max(0.0, self.cosine) / COSINE)

    @property
    def own(self) -> float:
        return 1.0 if self.echo.covered < ECHO_COVER else _mark(self.echo.share, *ECHO)

    @property
    def unrepeated(self) -> float:
        return _mark(self.repetition.share, *REPETITION)

    @property
    def finished(self) -> float:
        return _mark(self.truncation.doubt, *DOUBT)

    @property
    def scores(self) -> dict[str, float]:
        """Criterion -> the lowest of the marks that bear on it."""
        return {
            "coherence": round(min(self.unrepeated, self.finished), 4),
            "relevance": round(min(self.likeness, self.own), 4),
        }


def _mark(fault: float, free: float, enough: float) -> float:
    """1 up to `free`, `PASS` at `enough`, falling on to 0."""
    return max(0.0, 1 - (1 - PASS) * max(0.0, fault - free) / (enough - free))


class LikenessJudge:
    """Judges by likeness to the instruction and by the marks of a reply gone wrong."""

    __dataforge_role__: ClassVar[str] = "judge"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._one_at_a_time = threading.Lock()
        # Attempts at one instruction come close together, so its parts are kept a while.
        self._kept = lru_cache(maxsize=512)(self._embedded)

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        """The verdict on one case, by the rubric's `pass_mark` and `floor`; its prompt is unread.

        The score is the lower of relevance and coherence: an answer is as good as its worst side.
        """
        if not words(case.answer):
            return _empty(rubric)
        found = await asyncio.to_thread(self._measured, case)
        scores = found.scores
        score = min(scores.values())
        passed = score >= max(rubric.pass_mark, rubric.floor)
        return Verdict(
            status="pass" if passed else "fail",
            score=score,
            scores={**dict.fromkeys(rubric.criteria), **scores},
            feedback="" if passed else _feedback(case, found, max(rubric.pass_mark, rubric.floor)),
            evidence=_evidence(found),
            verifier=VERIFIER,
        )

    def _measured(self, case: Case) -> _Measured:
        long_enough = len(words(case.answer)) >= ECHO_WORDS
        return _Measured(
            cosine=self._cosine(case),
            echo=echo(case.answer, case.instruction) if long_enough else Echo(0.0, 0.0, (0, 0)),
            repetition=repetition(case.answer),
            truncation=truncation(case.answer, case.instruction)
            if not case.truncated
            else Truncation(1.0, "was cut at its token limit", (0, len(case.answer))),
        )

    def _cosine(self, case: Case) -> float:
        """The answer's likeness to whichever part of the instruction it is most like."""
        answer = self._embedded(case.answer)
        return max(_dot(answer, self._kept(part)) for part in parts(case.instruction))

    def _embedded(self, text: str) -> tuple[float, ...]:
        # One text at a time: in a batch its last digits would depend on its neighbours.
        with self._one_at_a_time:
            return tuple(map(float, self._embedder.embed([text])[0]))


def parts(instruction: str) -> tuple[str, ...]:
    """The whole instruction, and where a text stands below it, its request and the text's parts."""
    request, blank, text = instruction.strip().partition("\n\n")
    if not blank:
        return (instruction,)
    return (instruction, request, *_chunks(text))


def _chunks(text: str) -> tuple[str, ...]:
    """Whole sentences of `text` in stretches of up to about `CHUNK_WORDS` words."""
    chunks: list[str] = []
    room = 0
    for start, end in sentences(text):
        size = len(words(text[start:end]))
        if size > room:
            chunks.append("")
            room = CHUNK_WORDS
        chunks[-1] = f"{chunks[-1]} {text[start:end]}".strip()
        room -= size
    return tuple(chunks)


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _feedback(case: Case, found: _Measured, enough: float) -> str:
    """What to do better, worst first, for an answerer to act on."""
    request = _short(case.instruction.strip().partition("\n\n")[0], 160)
    phrase = _short(found.repetition.phrase, 80)
    end = _short(case.answer[slice(*found.truncation.span)][-40:], 40)
    said = (
        (
            found.finished,
            f"Finish the last sentence and end there: the answer {found.truncation.why} "
            f"(“…{end}”). If it grows too long, say less.",
        ),
        (found.unrepeated, f"You repeat “{phrase}”; say each thing once."),
        (found.own, "Do not copy the instruction; answer it in your own words."),
        (found.likeness, f"Answer the request itself, and stay with it: “{request}”"),
    )
    wanting = [text for mark, text in sorted(said) if mark < enough]
    return " ".join(wanting or [min(said)[1]])


def _short(text: str, most: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"


def _evidence(found: _Measured) -> Mapping[str, object]:
    return {
        "cosine": round(found.cosine, 4),
        "copied": round(found.echo.share, 4),
        "repeated": round(found.repetition.share, 4),
        "phrase": found.repetition.phrase,
        "times": found.repetition.times,
        "ends": found.truncation.why,
        "end_span": list(found.truncation.span),
    }


def _empty(rubric: Rubric) -> Verdict:
    return Verdict(
        status="fail",
        score=0.0,
        scores={**dict.fromkeys(rubric.criteria), "coherence": 0.0, "relevance": 0.0},
        feedback="Write an answer: this one holds no word.",
        verifier=VERIFIER,
    )
