"""What calls cost: tokens times the prices of a table that the user gives.

No price is shipped, since any would be wrong in a month. Models in this process cost nothing; any
other without a price has an unknown cost, which is told as unknown and never as nothing. Costs are
worked out from the journal, so another table tells them anew.

    ["gpt-4o-mini*"]            # a model's name, or a pattern; the longest that fits holds
    in = 0.15                   # USD a million tokens read
    out = 0.60                  # and written
    cached = 0.075              # read and found in the endpoint's cache; as `in` if left out
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from dataforge.errors import InputError, UnknownModel, UsageError
from dataforge.models.specs import read_spec

__all__ = ["FREE", "NO_PRICES", "Price", "Prices", "load_prices", "price_name", "require_prices"]

_IN_PROCESS = ("embedded", "gguf", "vllm", "scripted")
_KEYS = ("in", "out", "cached")


class Counted(Protocol):
    """Tokens of a reply, or of many."""

    @property
    def tokens_in(self) -> int: ...
    @property
    def tokens_out(self) -> int: ...
    @property
    def tokens_cached(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Price:
    """USD a million tokens."""

    read: float
    written: float
    cached: float

    def of(self, counted: Counted) -> float:
        """USD for so many tokens."""
        fresh = counted.tokens_in - min(counted.tokens_cached, counted.tokens_in)
        cached = counted.tokens_in - fresh
        read = fresh * self.read + cached * self.cached
        return (read + counted.tokens_out * self.written) / 1e6


FREE = Price(0.0, 0.0, 0.0)
"""Of a model in this process, or one written in code."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by model."""

    table: Mapping[str, Price] = field(default_factory=dict)
    """Name or pattern -> price."""

    def of(self, spec: str) -> Price | None:
        """The price of the model that a role's spec names; None where it is not known."""
        name = price_name(spec)
        if name is None:
            return FREE
        fits = [pattern for pattern in self.table if _fits(name, pattern)]
        return self.table[max(fits, key=len)] if fits else None


NO_PRICES = Prices()
"""An empty table: only what runs in this process has a price."""


def price_name(spec: str) -> str | None:
    """The name that a role's model has in a table of prices; None for one that costs nothing.

    Of an endpoint that is what follows its `#`, of a hosted model `provider/model`, of a file of
    workers `workers:FILE`.
    """
    if spec.startswith("code:"):
        return None
    if spec.startswith("workers:"):
        return spec
    try:
        found = read_spec(spec.split()[0] if spec.startswith("http") else spec)
    except UnknownModel:
        # A role played by a model that was made in code has no spec.
        return spec
    if found.form in _IN_PROCESS:
        return None
    return found.name.partition("#")[2] if found.form == "http" else found.name


def require_prices(specs: Mapping[str, str], prices: Prices) -> None:
    """Raises UsageError where a model (role -> spec) lacks the price that a budget needs."""
    for role, spec in specs.items():
        if prices.of(spec) is None:
            raise UsageError(
                f"a budget of money needs the price of every model, and {price_name(spec)!r}, "
                f"which plays {role}, has none: give it one in a file, --prices FILE"
            )


def load_prices(path: Path) -> Prices:
    """The table in a TOML file; InputError names the file, the model and what is wrong."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not TOML: {error}") from error
    return Prices({name: _price(f"{path}: [{name!r}]", row) for name, row in found.items()})


def _price(where: str, row: object) -> Price:
    if not isinstance(row, dict):
        raise InputError(f'{where}: write a table, as in ["gpt-4o-mini"] with in and out')
    if unknown := sorted(row.keys() - set(_KEYS)):
        raise InputError(f"{where}: there is no key {unknown[0]!r}; there are {', '.join(_KEYS)}")
    for key in ("in", "out"):
        if key not in row:
            raise InputError(f"{where}: lacks {key}, in USD a million tokens")
    for key, value in row.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            raise InputError(f"{where}: {key} = {value!r} must be USD a million tokens, 0 or more")
    return Price(
        float(row["in"]), float(row["out"]), float(row["cached" if "cached" in row else "in"])
    )


def _fits(name: str, pattern: str) -> bool:
    """Whether a pattern fits a name, whole or from a slash on, whatever the case."""
    name, pattern = name.lower(), pattern.lower()
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"*/{pattern}")
