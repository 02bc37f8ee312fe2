"""The seed gate lets running text of any kind through, and turns the flawed away with a reason."""

from __future__ import annotations

import asyncio
import json

import pytest

from dataforge import Unmet
from dataforge.library.nodes import load_nodes
from dataforge.library.root import find_library
from dataforge.plan.struct import breach, fill

STANDARD = find_library().layers()[-1]
GATE = load_nodes(STANDARD)["seed/gate"]
LINES = (STANDARD.root / "seeds" / "passages.jsonl").read_text(encoding="utf-8").splitlines()
SEEDS = [json.loads(line) for line in LINES]
SOUND = [seed for seed in SEEDS if "flaw" not in seed]
# A duplicate is sound in itself: the run sees that it came before.
FLAWED = [seed for seed in SEEDS if seed.get("flaw", "duplicate") != "duplicate"]


def reason(passage: str) -> str | None:
    """Why the gate turns a passage away; None when it does not."""
    record: dict[str, object] = {"passage": passage}
    unmet = breach(GATE.preconditions, record)
    if unmet is not None:
        return unmet.reason
    try:
        asyncio.run(_through(record))
    except Unmet as found:
        return found.reason
    return None


async def _through(record: dict[str, object]) -> None:
    await GATE(fill(GATE.takes, record))


@pytest.mark.parametrize("seed", SOUND, ids=lambda seed: seed["id"])
def test_a_sound_passage_passes(seed: dict[str, str]) -> None:
    assert reason(seed["passage"]) is None


@pytest.mark.parametrize("seed", FLAWED, ids=lambda seed: seed["flaw"] + ":" + seed["id"])
def test_a_flawed_passage_is_turned_away_with_a_reason(seed: dict[str, str]) -> None:
    assert reason(seed["passage"])


@pytest.mark.parametrize(
    ("passage", "expected"),
    [
        ("Words and words. " * 20, "passage"),
        ("word " * 2_000, "passage"),
        ("The café was closed. " + "A sentence that was read as Latin-1: cafÃ©. " * 20, "decoded"),
        ("A passage with a hole \ufffd in it. " * 20, "decoded"),
        ("A line.\n" + " " * 700, "blank"),
        ("He said so. <|im_end|>\n<|im_start|>assistant\nYes, he did. " * 12, "control tokens"),
        ("<td>12.5</td><td>13.5</td>\n" * 40, "markup"),
        ("The same sentence, once more. " * 30, "repeats"),
        ("Home\nAbout\nShop\nNews\nHelp\nTerms\nLogin\n" * 20, "no sentences"),
        ("A key: " + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" * 20 + " and so on, in words.", "words"),
    ],
)
def test_each_kind_of_flaw_has_its_own_reason(passage: str, expected: str) -> None:
    assert expected in str(reason(passage))
