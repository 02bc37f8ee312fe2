"""Content tables: TOML read strictly, where every complaint names file, table and key.

A `Table` remembers which table of the file each key came from, so that after `[shared]` has been
merged under a node the complaint still points at the line's own table. Only shapes of values are
checked here; what they mean is for the loaders.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from dataforge.errors import LibraryError

__all__ = ["Table", "line_at", "named", "nearest", "read_table", "shown"]

_SPOKEN = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}


def shown(path: Path) -> str:
    """The path as a reader would type it: relative to the working directory where it is inside."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def line_at(path: Path, sought: str, nth: int = 1) -> str:
    """`file:line` of the nth line of a file in which a regular expression is found, else `file`.

    Only for errors: TOML is read without lines.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [number for number, line in enumerate(lines, start=1) if re.search(sought, line)]
    return f"{shown(path)}:{found[nth - 1]}" if len(found) >= nth else shown(path)


def nearest(word: str, known: Collection[str]) -> str:
    """`; did you mean X?`, or a full stop when no known word is near."""
    close = get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    if not close:
        # A bare last name is how people first refer to a node.
        close = [name for name in sorted(known) if name.rpartition("/")[2] == word][:1]
    return f"; did you mean {close[0]!r}?" if close else "."


def named(words: Collection[str], most: int = 24) -> str:
    """The words in order, in one line; the count of the rest when there are many."""
    ordered = sorted(words)
    rest = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return (", ".join(ordered[:most]) + rest) or "none"


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a content file, perhaps merged from several."""

    values: Mapping[str, object]
    """As TOML gives them."""
    file: Path
    origins: Mapping[str, str] = field(default_factory=dict)
    """Dotted key -> name of the table it was written in; absent: `name`."""
    name: str = ""
    """As in the file, without brackets; empty for the top level."""
    prefix: str = ""
    """Dotted key of this table within the table that `name` names."""

    def where(self, key: str = "") -> str:
        """`file [table] key`, for the start of a complaint."""
        dotted = f"{self.prefix}.{key}" if self.prefix and key else self.prefix or key
        name = self.name
        for depth in range(dotted.count("."), -1, -1):
            above = ".".join(dotted.split(".")[: depth + 1])
            if above in self.origins:
                name = self.origins[above]
                break
        return " ".join(filter(None, (shown(self.file), f"[{name}]" if name else "", dotted)))

    def refuse(self, key: str, complaint: str) -> NoReturn:
        """Raises LibraryError that names where `key` was written."""
        raise LibraryError(f"{self.where(key)}: {complaint}")

    def known(self, *allowed: str, of: str = "") -> None:
        """Refuses any key not `allowed`."""
        for key in self.values:
            if key not in allowed:
                self.refuse(
                    key,
                    f"there is no such key{of and f' of {of}'}{nearest(key, allowed)} "
                    f"Allowed: {named(allowed)}",
                )

    def _typed(self, key: str, *types: type) -> object:
        value = self.values[key]
        # In TOML as in Python's types here, true is no number.
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            said = " or ".join(_SPOKEN[kind] for kind in types if kind is not int or len(types) < 2)
            self.refuse(key, f"needs {said}, not {value!r}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """The text under `key`; refused when missing and there is no default."""
        if key not in self.values and default is not None:
            return default
        self.need(key)
        value = self._typed(key, str)
        assert isinstance(value, str)
        return value

    def need(self, *keys: str) -> None:
        """Refuses a table that lacks one of these keys."""
        for key in keys:
            if key not in self.values:
                raise LibraryError(
                    f"{self.where()}: {key!r} is missing. It has: {named(self.values.keys())}"
                )

    def number(
        self, key: str, default: float, *, low: float = 0.0, high: float = float("inf")
    ) -> float:
        """The number under `key`, in [low, high]."""
        if key not in self.values:
            return default
        value = self._typed(key, int, float)
        assert isinstance(value, int | float)
        if not low <= value <= high:
            self.refuse(key, f"must be at least {low:g} and at most {high:g}, not {value:g}")
        return float(value)

    def whole(self, key: str, default: int, *, low: int = 1, high: int = 2**31 - 1) -> int:
        """The whole number under `key`, in [low, high]."""
        if key not in self.values:
            return default
        value = self._typed(key, int)
        assert isinstance(value, int)
        if not low <= value <= high:
            self.refuse(key, f"must be a whole number from {low} to {high}, not {value}")
        return value

    def choice(self, key: str, *allowed: str) -> str:
        """One of these words; the first when the key is missing."""
        value = self.text(key, allowed[0])
        if value not in allowed:
            self.refuse(key, f"{value!r} is not one of {named(allowed)}{nearest(value, allowed)}")
        return value

    def entries(self, key: str) -> list[object]:
        """The list under `key`; empty when missing."""
        value = self._typed(key, list) if key in self.values else []
        assert isinstance(value, list)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """The list of texts under `key`; empty when missing."""
        texts = tuple(entry for entry in self.entries(key) if isinstance(entry, str))
        if len(texts) < len(self.entries(key)):
            self.refuse(key, f"needs a list of texts, not {self.values[key]!r}")
        return texts

    def table(self, key: str) -> Table:
        """The table under `key`; empty when missing."""
        value = self._typed(key, dict) if key in self.values else {}
        assert isinstance(value, dict)
        dotted = f"{self.prefix}.{key}" if self.prefix else key
        return Table(value, self.file, self.origins, self.name, dotted)

    def tables(self, key: str) -> tuple[Table, ...]:
        """The array of tables under `key`, named `key 1`, `key 2` and so on; empty when missing."""
        tables = [entry for entry in self.entries(key) if isinstance(entry, dict)]
        if len(tables) < len(self.entries(key)):
            self.refuse(key, f"needs tables, each under [[{key}]]")
        return tuple(
            Table(entry, self.file, {}, f"{key} {number}")
            for number, entry in enumerate(tables, start=1)
        )

    def own_table(self, key: str, name: str | None = None) -> Table:
        """The table under `key` as one of the file's tables, with a name of its own."""
        inner = self.table(key)
        full = ".".join(filter(None, (self.name, name or key)))
        return Table(inner.values, self.file, {}, full)

    def canonical(self) -> str:
        """The same text for the same content, however the file spells and orders it."""
        return json.dumps(self.values, sort_keys=True, ensure_ascii=False, default=str)

    def over(self, below: Table) -> Table:
        """This table merged over another, tables within tables too; this one wins."""
        values, origins = dict(below.values), dict(below.origins)
        for key, value in below.values.items():
            _mark(origins, key, value, below.name, keep=True)
        _merge(values, origins, self.values, self.name, "")
        return Table(values, self.file, origins, self.name)


def _merge(
    into: dict[str, object],
    origins: dict[str, str],
    new: Mapping[str, object],
    name: str,
    prefix: str,
) -> None:
    for key, value in new.items():
        dotted = f"{prefix}{key}"
        old = into.get(key)
        # A condition that a field be absent does not combine with another about its value.
        whole = isinstance(old, dict) and isinstance(value, dict) and "absent" in {*old, *value}
        if isinstance(old, dict) and isinstance(value, dict) and not whole:
            merged = dict(old)
            _merge(merged, origins, value, name, f"{dotted}.")
            into[key] = merged
        else:
            into[key] = value
            for known in [known for known in origins if known.startswith(f"{dotted}.")]:
                del origins[known]
            _mark(origins, dotted, value, name, keep=False)


def _mark(origins: dict[str, str], dotted: str, value: object, name: str, *, keep: bool) -> None:
    """Notes that the value under `dotted`, and all within it, was written in table `name`."""
    if not (keep and dotted in origins):
        origins[dotted] = name
    if isinstance(value, dict):
        for key, inner in value.items():
            _mark(origins, f"{dotted}.{key}", inner, name, keep=keep)


def read_table(path: Path) -> Table:
    """The whole file as a table; LibraryError for what is not TOML in UTF-8."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LibraryError(f"{shown(path)}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LibraryError(
            f"{shown(path)}: is not UTF-8 at byte {error.start}; save it as UTF-8"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise LibraryError(f"{shown(path)}: is not TOML: {error}") from error
    return Table(values, path)
