"""Seeds: passages read from a file or a folder, each with an id that stays the same.

JSON lines (plain or gzipped), Parquet, a folder of texts, or one text. What cannot be read as a
whole (missing, empty, corrupt, another format) is an error; a single line that cannot be used is
skipped and listed with its place and reason, and the rest goes on. Nothing is judged here: a
passage too short or ill-formed for a graph is turned away by the graph's own gate, and counted.
Memory follows neither the number of seeds nor their length: a passage is read when it is needed,
from its place in a plain file or folder, else (gzip, Parquet) from a copy on disk.

Ids: the record's own `id` where it is a short text or a number, else `<stem>:<line>` (Parquet: row;
folder: the text's path in it). A later record with an id already taken is skipped when it is the
same passage, else it becomes `<id>@<line>`.
"""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from dataforge.errors import InputError
from dataforge.models.text import clean
from dataforge.run.seed import Place, Seed, SeedStore

__all__ = ["FIELDS", "MOST_SKIPPED", "SeedFile", "Skipped", "read_seeds"]

FIELDS = ("passage", "text", "content")
"""Names a passage goes by when none is given, most telling first."""

MOST_SKIPPED = 1_000
"""Lines that cannot be used and are listed; more are counted."""

_LINES = (".jsonl", ".json", ".ndjson", ".jsonl.gz", ".json.gz", ".ndjson.gz")
_TEXTS = (".txt", ".md")
_META_LENGTH = 500
_NAMES_SHOWN = 12
_NAMES_KEPT = 1_000
_TOLD_EVERY = 100_000


@dataclass(frozen=True, slots=True)
class Skipped:
    """One line or text that could not be used."""

    where: str
    """`file:line`, `file: row N` or the text's path."""
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class SeedFile:
    """What was read from one path."""

    seeds: SeedStore
    """At least one, in the file's order."""
    skipped: tuple[Skipped, ...]
    """The first of those that could not be used, up to `MOST_SKIPPED`."""
    skipped_count: int
    """How many could not be used."""
    field: str
    """The field the passages stood in; empty for texts."""


@dataclass(frozen=True, slots=True)
class _Found:
    """One record of the input, or why it is none."""

    number: str
    """Line, row or path within the input, for ids."""
    where: str
    record: Mapping[str, object] | str
    """The record; a text says why there is none."""
    place: Place | None = None
    """Where it can be read again: a byte of the file, a path in the folder; None: nowhere."""


def read_seeds(
    path: Path, field: str | None = None, tell: Callable[[int], None] | None = None
) -> SeedFile:
    """The passages under `path`, from `field` or the first of `FIELDS` that a record has.

    `tell` hears how many are read, every 100,000. InputError when nothing usable can be read,
    naming the fault and the remedy.
    """
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder")
    if not (path.is_file() or path.is_dir()):
        raise InputError(f"{path}: is no file that can be read twice; write it to one first")
    try:
        if path.is_dir() or path.name.endswith(_TEXTS):
            if field is not None:
                raise InputError(f"{path}: texts have no field {field!r}; leave --field out")
            found = _folder(path) if path.is_dir() else iter([_text(path, path.name)])
            return _Reading(path, "passage", tell).of(found)
        if path.name.endswith(".parquet"):
            return _Reading(path, field, tell).of(_rows(path, field))
        if path.name.endswith(_LINES):
            return _Reading(path, field, tell).of(_lines(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    raise InputError(
        f"{path}: {path.suffix or 'a name without a suffix'} is no kind of seeds known here; give "
        f".jsonl, .jsonl.gz, .parquet or a folder of {' and '.join(_TEXTS)} files"
    )


class _Reading:
    """One reading of an input: settles the field and makes ids unique."""

    def __init__(self, path: Path, field: str | None, tell: Callable[[int], None] | None) -> None:
        self._tell = tell
        self._path = path
        self._field = field
        self._seeds = SeedStore(str(path), self._again)
        self._skipped: list[Skipped] = []
        self._skipped_count = 0
        self._names: dict[str, None] = {}

    def of(self, found: Iterable[_Found]) -> SeedFile:
        """The seeds among what was found, and what was skipped."""
        for each in found:
            if isinstance(each.record, str):
                self._skip(each, each.record)
                continue
            if len(self._names) < _NAMES_KEPT:
                self._names |= dict.fromkeys(each.record)
            self._field = self._field or next((n for n in FIELDS if n in each.record), None)
            seed = self._seed(each)
            if isinstance(seed, str):
                self._skip(each, seed)
                continue
            while (taken := self._seeds.find(seed.id)) and taken.passage != seed.passage:
                seed = replace(seed, id=f"{seed.id}@{each.number}")
            if taken:
                self._skip(each, f"repeats the id {seed.id!r} with the same passage")
            else:
                self._seeds.add(seed, each.place)
                if self._tell is not None and len(self._seeds) % _TOLD_EVERY == 0:
                    self._tell(len(self._seeds))
        if not len(self._seeds):
            raise InputError(self._nothing())
        field = self._field or ""
        return SeedFile(self._seeds, tuple(self._skipped), self._skipped_count, field)

    def _seed(self, found: _Found) -> Seed | str:
        """The seed in what was found; a text says why there is none."""
        assert not isinstance(found.record, str)
        passage, fault = _passage(found.record, self._field)
        if fault:
            return fault
        meta = {
            name: said
            for name, value in found.record.items()
            if name not in ("id", self._field) and (said := _plain(value))
        }
        own = _plain(found.record.get("id"))
        return Seed(own or clean(f"{_stem(self._path)}:{found.number}"), passage, meta)

    def _again(self, place: Place) -> Seed | None:
        """The seed at a place of a plain file or folder; None where it cannot be read any more."""
        try:
            if isinstance(place, str):
                folder = self._path.is_dir()
                found = _text(self._path / place if folder else self._path, place)
            else:
                with self._path.open("rb") as file:
                    file.seek(place)
                    found = _Found("", "", _record(file.readline()))
        except OSError:
            return None
        seed = found.record if isinstance(found.record, str) else self._seed(found)
        return None if isinstance(seed, str) else seed

    def _skip(self, found: _Found, reason: str) -> None:
        self._skipped_count += 1
        if self._skipped_count <= MOST_SKIPPED:
            self._skipped.append(Skipped(found.where, reason))

    def _nothing(self) -> str:
        """Why an input yielded no seed at all."""
        path, names, field = self._path, self._names, self._field
        if not self._skipped:
            return f"{path}: is empty; give one JSON object a line, or texts"
        if names and (field is None or field not in names):
            shown = ", ".join(list(names)[:_NAMES_SHOWN])
            near = get_close_matches(field or FIELDS[0], names, n=1)
            return (
                f"{path}: no record has {f'a field {field!r}' if field else ' or '.join(FIELDS)}"
                f"{f'; did you mean {near[0]!r}?' if near else '.'} Fields found: {shown}. Name "
                f"the one that holds the passage with --field NAME"
            )
        hint = "; the file needs one whole JSON object on each line"
        return (
            f"{path}: no usable passage; {self._skipped_count:,} skipped, the first "
            f"{self._skipped[0]}{'' if names or path.is_dir() else hint}"
        )


def _passage(record: Mapping[str, object], field: str | None) -> tuple[str, str]:
    """The passage, and what is wrong with it if anything is."""
    if field is None or field not in record:
        wanted = repr(field) if field else f"none of {', '.join(FIELDS)}"
        return "", f"has {'no field ' if field else ''}{wanted}"
    value = record[field]
    if not isinstance(value, str):
        return "", f"field {field!r} is {_spoken(value)}, not a text"
    if not value.strip():
        return "", f"field {field!r} is blank"
    if not _encodes(value):
        return "", f"field {field!r} holds half a character (a lone surrogate)"
    return value, ""


def _lines(path: Path) -> Iterator[_Found]:
    """The records of a file of JSON lines; blank lines are passed over."""
    with path.open("rb") as file:
        head = file.read(3)
    if path.suffix == ".gz" and head and not head.startswith(b"\x1f\x8b"):
        raise InputError(f"{path}: is not gzip, though its name ends in .gz; rename or compress it")
    number = offset = 0
    zipped = head.startswith(b"\x1f\x8b")
    try:
        with gzip.open(path) if zipped else path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                text = _without_mark(path, line) if number == 1 else line
                if text.strip():
                    place = None if zipped else offset + len(line) - len(text)
                    yield _Found(str(number), clean(f"{path}:{number}"), _record(text), place)
                offset += len(line)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"{path}:{number + 1}: the gzip data is corrupt or cut off here ({error}); fetch the "
            f"file again, or keep what `gzip -dc` still gives"
        ) from error


def _without_mark(path: Path, line: bytes) -> bytes:
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{path}: is UTF-16; convert it: iconv -f UTF-16 -t UTF-8")
    return line.removeprefix(codecs.BOM_UTF8)


def _record(line: bytes) -> Mapping[str, object] | str:
    try:
        value: object = json.loads(line.rstrip(b"\r\n").decode("utf-8"))
    except UnicodeDecodeError as error:
        return f"is not UTF-8 at byte {error.start + 1}"
    except json.JSONDecodeError as error:
        return f"is not JSON: {error.msg.removesuffix(' at')}, column {error.colno}"
    except (ValueError, RecursionError) as error:
        return f"is not JSON that can be read: {error}"
    if not isinstance(value, dict):
        return f"is {_spoken(value)}, not a JSON object"
    return value


def _rows(path: Path, field: str | None) -> Iterator[_Found]:
    """The rows of a Parquet file; only columns of plain values are read."""
    import polars as pl

    if not path.stat().st_size:
        return
    try:
        schema = pl.read_parquet_schema(path)
        wanted = field or next((name for name in FIELDS if name in schema), None)
        plain = [name for name, kind in schema.items() if not kind.is_nested()]
        if wanted is None or wanted not in schema:
            # One row of names is enough to say which fields there are.
            yield _Found("1", f"{path}: row 1", dict.fromkeys(schema))
            return
        if wanted not in plain:
            raise InputError(
                f"{path}: the column {wanted!r} is of type {schema[wanted]}, not text; choose "
                f"another with --field NAME: {', '.join(plain[:_NAMES_SHOWN])}"
            )
        number = 0
        for frame in pl.scan_parquet(path).select(plain).collect_batches(maintain_order=True):
            for row in frame.iter_rows(named=True):
                number += 1
                yield _Found(str(number), clean(f"{path}: row {number}"), row)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"{path}: is no Parquet file that can be read ({str(error).splitlines()[0]}); write or "
            f"fetch it again"
        ) from error


def _folder(path: Path) -> Iterator[_Found]:
    """The texts of a folder and those below it, by path."""
    texts = [file for file in sorted(path.rglob("*")) if file.suffix in _TEXTS and file.is_file()]
    if not texts:
        raise InputError(
            f"{path}: holds no {' or '.join(_TEXTS)} file; give a folder of texts, or one file "
            f"such as .jsonl or .parquet"
        )
    for file in texts:
        yield _text(file, file.relative_to(path).as_posix())


def _text(file: Path, place: str) -> _Found:
    # A name on disk may be any bytes; one that is no text is no place that can be looked up.
    number, where = clean(place), clean(str(file))
    raw = file.read_bytes()
    try:
        text = _without_mark(file, raw).decode("utf-8")
    except UnicodeDecodeError as error:
        return _Found(number, where, f"is not UTF-8 at byte {error.start + 1}")
    return _Found(
        number, where, {"passage": text, "id": number}, place if number == place else None
    )


def _plain(value: object) -> str:
    """A short plain value as text; empty for anything else."""
    said = str(value) if isinstance(value, str | int | float) else ""
    return said if len(said) <= _META_LENGTH and _encodes(said) else ""


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _spoken(value: object) -> str:
    spoken = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return "null" if value is None else spoken.get(type(value), "a number")


def _stem(path: Path) -> str:
    name = path.name
    for suffix in (*_LINES, ".parquet"):
        name = name.removesuffix(suffix)
    return name
