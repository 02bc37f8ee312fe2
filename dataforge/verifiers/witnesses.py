"""Verifiers with the witnesses that show they work, and the run over them that `doctor` makes.

A witness is a text of which everybody can see whether it should pass. They lie as JSON Lines beside
each verifier and ship with it, so an installed copy can show that it works where it runs. Witnesses
are examples, not a measure of quality: how often a judge is right is measured on labelled pairs in
`evals/agreement.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dataforge.errors import DeclarationError
from dataforge.verifiers.echo import echo
from dataforge.verifiers.quotation import longest_shared_run
from dataforge.verifiers.repetition import repetition
from dataforge.verifiers.truncation import truncation

__all__ = [
    "Failure",
    "Verifier",
    "Witness",
    "read_witnesses",
    "run_witnesses",
    "standard_verifiers",
]

LEAST = 3
"""Witnesses of each kind a verifier must bring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """One text with the outcome it must have."""

    name: str
    text: str
    source: str = ""
    """What the text is compared with, for verifiers that compare."""
    passes: bool
    """Whether the text must pass."""
    hostile: bool = False
    """Made to look like the other outcome."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """A check and its witnesses; one without enough of them cannot be made."""

    name: str
    accepts: Callable[[str, str], bool]
    """(text, source) -> whether the text passes."""
    witnesses: tuple[Witness, ...] = field(repr=False)

    def __post_init__(self) -> None:
        passing = sum(witness.passes for witness in self.witnesses)
        failing = len(self.witnesses) - passing
        hostile = sum(witness.hostile for witness in self.witnesses)
        if min(passing, failing) < LEAST or not hostile:
            raise DeclarationError(
                f"verifier {self.name!r} brings {passing} passing, {failing} failing and {hostile} "
                f"hostile witnesses; it needs at least {LEAST} passing, {LEAST} failing and 1 "
                "hostile: add them to its witnesses file"
            )


@dataclass(frozen=True, slots=True)
class Failure:
    """A witness whose outcome was not the one it must have."""

    verifier: str
    witness: Witness

    def say(self) -> str:
        """The failure in one sentence."""
        should, did = ("pass", "failed") if self.witness.passes else ("fail", "passed")
        return f"{self.verifier}: witness {self.witness.name!r} should {should} and {did}"


def read_witnesses(path: Path) -> tuple[Witness, ...]:
    """The witnesses in a JSON Lines file; `DeclarationError` names the line that is wrong."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            found.append(Witness(**json.loads(line)))
        except (TypeError, ValueError) as error:
            raise DeclarationError(f"{path}:{number}: not a witness: {error}") from error
    return tuple(found)


def run_witnesses(verifiers: Iterable[Verifier]) -> tuple[Failure, ...]:
    """The witnesses that fail, in order; empty when every verifier works as shown."""
    return tuple(
        Failure(verifier.name, witness)
        for verifier in verifiers
        for witness in verifier.witnesses
        if verifier.accepts(witness.text, witness.source) != witness.passes
    )


def standard_verifiers() -> tuple[Verifier, ...]:
    """The verifiers that come with DataForge, each at the limit its witnesses are written for."""
    checks: dict[str, Callable[[str, str], bool]] = {
        "echo": lambda text, source: echo(text, source).share < 0.8,
        "quotation": lambda text, source: longest_shared_run(text, source).words < 8,
        "repetition": lambda text, _: repetition(text).share < 0.35,
        "truncation": lambda text, source: not truncation(text, source).cut,
    }
    here = Path(__file__).parent
    return tuple(
        Verifier(name, accepts, read_witnesses(here / f"{name}.witnesses.jsonl"))
        for name, accepts in checks.items()
    )
