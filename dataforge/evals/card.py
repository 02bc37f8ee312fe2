"""The agreement card of a judge: its measured agreement, stored beside it, and whether it is stale.

A card carries digests of everything its figures depend on, so a changed judge, verifier or set of
pairs shows as stale instead of passing for measured. A card is written by measuring (`measure`;
`remeasure` keeps the notes and the other ways to judge of the card before it) and read by `doctor`
and the run report; figures are never edited by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from dataforge import verifiers
from dataforge.errors import InputError
from dataforge.evals.agreement import (
    INTERVAL,
    Agreement,
    Judged,
    agreement,
    criterion_aucs,
    judge_pairs,
)
from dataforge.evals.pairs import FAULTS, Fault, read_pairs
from dataforge.models.judge import Judge, Rubric

__all__ = [
    "Alternative",
    "Card",
    "load_card",
    "measure",
    "remeasure",
    "say_card",
    "stale",
    "write_card",
]

FORMAT = 1


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Alternative(_Stored):
    """Another way to judge the same pairs, measured for comparison."""

    name: str
    how: str
    """What it is, in a sentence."""
    auc: Mapping[Fault, float]
    """Fault -> AUC on the pairs of the test split."""
    own: bool = False
    """One of the judge's own criteria by itself, measured with it; others are kept as reported."""


class Card(_Stored):
    """How well one judge agrees with one file of labelled pairs."""

    format: int = FORMAT
    judge: str
    """Name of the judge's file, without suffix."""
    weights: str
    """Identity of the weights it judges with."""
    pass_mark: float
    floor: float
    """The marks of the rubric it was measured by, which decide what is accepted."""
    interval: str = INTERVAL
    test: Agreement
    """On the split that nothing was tuned on: the figures to quote."""
    all: Agreement
    """On every pair, the split it was tuned on included."""
    alternatives: tuple[Alternative, ...]
    """Simpler or other ways to judge, on the test split."""
    notes: tuple[str, ...]
    """What the judge cannot tell, in sentences."""
    digests: Mapping[str, str]
    """File -> digest of what was measured; see `stale`."""


async def measure(
    judge: Judge,
    rubric: Rubric,
    judge_file: Path,
    weights: str,
    *,
    alternatives: Sequence[Alternative] = (),
    notes: Sequence[str] = (),
) -> tuple[Card, tuple[Judged, ...]]:
    """Judges the pairs that lie beside `judge_file`; the card and every verdict."""
    judged = await judge_pairs(judge, rubric, read_pairs(_beside(judge_file, "pairs.jsonl")))
    test = [each for each in judged if each.pair.split == "test"]
    alone = [
        Alternative(
            name=f"{name} alone", how=f"the judge's own score for {name}", auc=aucs, own=True
        )
        for name, aucs in criterion_aucs(test).items()
    ]
    card = Card(
        judge=judge_file.stem,
        weights=weights,
        pass_mark=rubric.pass_mark,
        floor=rubric.floor,
        test=agreement(test),
        all=agreement(judged),
        alternatives=(*alone, *alternatives),
        notes=tuple(notes),
        digests=_digests(judge_file),
    )
    return card, judged


async def remeasure(judge: Judge, rubric: Rubric, judge_file: Path, weights: str) -> Card:
    """Measures a judge anew and stores its card, with the notes and others of the card before."""
    before = load_card(judge_file)
    others = [other for other in before.alternatives if not other.own] if before else []
    notes = before.notes if before else ()
    card, _ = await measure(judge, rubric, judge_file, weights, alternatives=others, notes=notes)
    write_card(card, judge_file)
    return card


def load_card(judge_file: Path) -> Card | None:
    """The card stored beside a judge's file; None when it has none, InputError when unreadable."""
    path = _beside(judge_file, "card.json")
    if not path.exists():
        return None
    try:
        return Card.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(f"{path}: not an agreement card: {error}; measure it again") from error


def write_card(card: Card, judge_file: Path) -> Path:
    """Stores a card beside the judge's file and returns where."""
    path = _beside(judge_file, "card.json")
    plain = TypeAdapter(Card).dump_python(card, mode="json", round_trip=True)
    path.write_text(json.dumps(_rounded(plain), indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


def stale(card: Card, judge_file: Path) -> tuple[str, ...]:
    """What has changed since the card was measured; empty when nothing has."""
    now = _digests(judge_file)
    return tuple(
        name
        for name in sorted(card.digests.keys() | now.keys())
        if card.digests.get(name) != now.get(name)
    )


def say_card(card: Card | None, changed: Sequence[str] = (), *, detail: bool = False) -> str:
    """The card as plain text, for a terminal or a report; `changed` is what `stale` found.

    `detail` adds the figures for parts of each fault and for other ways to judge.
    """
    if card is None:
        return "This judge has no agreement card: how far to trust it has not been measured."
    test, whole = card.test, card.all
    lines = [
        f"Agreement of judge {card.judge} with labelled pairs it was not tuned on",
        f"{'':12}{'n':>5}{'AUC':>8}  {'95 % interval':14}{'accepted':>9}{'AUC, all pairs':>16}",
        f"{'good':12}{test.good:>5}{'':>8}  {'':14}{test.good_accepted:>9.0%}",
    ]
    for fault in FAULTS:
        if (row := test.against.get(fault)) is not None:
            interval = f"{row.low:.3f}-{row.high:.3f}"
            lines.append(
                f"{fault:12}{row.n:>5}{row.auc:>8.3f}  {interval:14}{row.accepted:>9.0%}"
                f"{whole.against[fault].auc:>16.3f}"
            )
    if whole.undecided:
        lines.append(f"{whole.undecided} of all verdicts were undecided and count as the lowest.")
    lines.extend(card.notes)
    if detail:
        lines.extend(_details(card))
    if changed:
        lines.append(
            f"STALE: changed since it was measured: {', '.join(changed)}. Measure it again before "
            "trusting these figures."
        )
    return "\n".join(lines)


def _details(card: Card) -> list[str]:
    lines = [f"{'':46}{'n':>5}{'AUC':>8}{'accepted':>10}"]
    for name, row in card.test.among.items():
        lines.append(f"{name:46}{row.n:>5}{row.auc:>8.3f}{row.accepted:>10.0%}")
    lines.append(f"{'AUC of':46}" + "".join(f"{fault:>12}" for fault in FAULTS))
    for other in (
        Alternative(
            name="this judge", how="", auc={f: r.auc for f, r in card.test.against.items()}
        ),
        *card.alternatives,
    ):
        figures = "".join(f"{other.auc.get(fault, float('nan')):>12.3f}" for fault in FAULTS)
        lines.append(f"{other.name:46}{figures}")
    return lines


def _beside(judge_file: Path, ending: str) -> Path:
    return judge_file.with_name(f"{judge_file.stem}.{ending}")


def _digests(judge_file: Path) -> dict[str, str]:
    """Digests of the judge, its pairs and the verifiers it may call."""
    pairs = _beside(judge_file, "pairs.jsonl")
    code = sorted(Path(verifiers.__path__[0]).glob("*.py"))
    return {
        judge_file.name: _digest([judge_file]),
        pairs.name: _digest([pairs]),
        "dataforge/verifiers": _digest(code),
    }


def _digest(paths: Sequence[Path]) -> str:
    # Line endings may be rewritten by a checkout; they change no figure.
    text = b"\0".join(path.read_bytes().replace(b"\r\n", b"\n") for path in paths)
    return blake2b(text, digest_size=16).hexdigest()


def _rounded(value: object) -> object:
    """The value with its floats rounded to four places, so that a card reads and diffs well."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return value
