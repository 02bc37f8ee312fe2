"""What a judge or verifier concludes: one of four statuses, never a bare number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Status", "Verdict"]

Status = Literal["pass", "fail", "undecided", "error"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A conclusion about one sample; only `pass` passes a gate."""

    status: Status
    """`undecided`: output or verdict could not be parsed; `error`: infrastructure failed."""
    score: float | None = None
    """In [0, 1]; None for `undecided` and `error`."""
    scores: Mapping[str, float | None] = field(default_factory=dict)
    """Criterion -> score in [0, 1]; None where this judge cannot tell."""
    feedback: str = ""
    """What to do better, in words an answerer can act on."""
    evidence: Mapping[str, object] = field(default_factory=dict)
    """JSON values: what was measured or extracted, candidates refused and why, parameters."""
    verifier: str = ""
    """Name and version or content hash of who concluded."""

    def __post_init__(self) -> None:
        """Refuses a score outside [0, 1], or one where the status allows none: ValueError."""
        if (self.score is None) != (self.status in ("undecided", "error")):
            raise ValueError(f"a {self.status!r} verdict cannot have score {self.score!r}")
        for name, score in (("score", self.score), *self.scores.items()):
            # Said this way round, since nothing holds of NaN.
            if score is not None and not 0 <= score <= 1:
                raise ValueError(f"a verdict's {name} must lie in [0, 1], and is {score!r}")
