"""Judges: a rubric put to something that can judge, giving a verdict.

`Rubric` is the question, loaded from `judges/*.toml`; `Judge` is what a judge node sees. A chat
model judges by `ModelJudge` (prompt, schema, strict parse); a judge in code (`judges/*.py`)
implements `Judge` itself. What judging costs and how well it agrees with labels is measured in
`evals/agreement.py`, not assumed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from dataforge.verifiers.verdict import Verdict

__all__ = ["Case", "Judge", "Rubric"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is judged: an answer to an instruction."""

    instruction: str
    answer: str
    truncated: bool = False
    """The answer was cut at its token limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """What to judge by."""

    name: str
    criteria: Mapping[str, str]
    """Criterion -> what a high mark means."""
    system: str
    prompt: str
    """Template over `{instruction}`, `{answer}`, `{criteria}`, `{scale}`."""
    pass_mark: float = 0.6
    """Least mean score in [0, 1] that passes."""
    floor: float = 0.4
    """Least score of any one criterion that passes."""
    scale: int = 5
    """Marks run from 1 to this."""
    max_tokens: int = 400


class Judge(Protocol):
    """Anything that can judge a case by a rubric, bound to a role by the run."""

    __dataforge_role__: ClassVar[str] = "judge"

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        """The verdict on one case; never raises for a reply it cannot read: that is `undecided`."""
        ...
