"""The bundled seed passages keep what seeds/README.md says of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

SEEDS = Path(__file__).resolve().parents[2] / "seeds"
ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (SEEDS / "passages.jsonl").read_bytes().decode("utf-8").split("\n")
    if line
]
FLAWED = [row for row in ROWS if "flaw" in row]
WELL_FORMED = [row for row in ROWS if "flaw" not in row]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def test_counts() -> None:
    assert len(WELL_FORMED) >= 60
    assert len(FLAWED) >= 8
    readme = (SEEDS / "README.md").read_text(encoding="utf-8")
    assert f"holds {len(ROWS)} passages" in readme
    assert f"Well-formed: {len(WELL_FORMED)} " in readme
    assert f"Flawed on purpose: {len(FLAWED)} " in readme


def test_every_row_has_its_keys_as_text() -> None:
    keys = {"id", "passage", "domain", "register"}
    for row in ROWS:
        assert set(row) - {"flaw"} == keys, row["id"]
        assert all(isinstance(value, str) and value for value in row.values()), row["id"]


def test_ids_are_unique_slugs() -> None:
    ids = [row["id"] for row in ROWS]
    assert len(set(ids)) == len(ids)
    for name in ids:
        bare = name.replace("-", "")
        assert bare.isascii() and bare.isalnum() and name == name.lower(), name


def test_well_formed_lengths() -> None:
    bands: Counter[int] = Counter()
    for row in WELL_FORMED:
        text = row["passage"]
        assert 500 <= len(text) <= 6000, row["id"]
        assert text == text.strip(), row["id"]
        assert "\ufffd" not in text, row["id"]
        bands[sum(len(text) >= limit for limit in (1000, 2000, 4000))] += 1
    assert bands[0] >= 25
    assert all(bands[band] >= low for band, low in ((1, 15), (2, 10), (3, 3)))


def test_domains_and_registers_vary() -> None:
    assert len({row["domain"] for row in WELL_FORMED}) >= 25
    assert len({row["register"] for row in WELL_FORMED}) >= 8


def test_well_formed_passages_differ() -> None:
    assert len({_plain(row["passage"]) for row in WELL_FORMED}) == len(WELL_FORMED)


def test_flaws_are_of_many_kinds() -> None:
    kinds = {row["flaw"] for row in FLAWED}
    assert len(kinds) >= 8
    for row in FLAWED:
        assert row["flaw"] != "short" or len(row["passage"]) < 500, row["id"]


def test_the_duplicate_follows_its_original() -> None:
    seen: set[str] = set()
    for row in ROWS:
        plain = _plain(row["passage"])
        assert (plain in seen) == (row.get("flaw") == "duplicate"), row["id"]
        seen.add(plain)
