"""Seeds: passages read from a file or a folder, each with an id that stays the same.

JSON lines (plain or gzipped), Parquet, a folder of texts, or one text. What cannot be read as a
whole (missing, empty, corrupt, another format) is an error; a single line that cannot be used is
skipped and listed with its place and reason, and the rest goes on. Nothing is judged here: a
passage too short or ill-formed for a graph is turned away by the graph's own gate, and counted.
Passages are held in memory: ten thousand pages are some 50 MB.

Ids: the record's own `id` where it is a text or whole number, else `<stem>:<line>` (Parquet: row;
folder: the text's path in it). A later record with an id already taken is skipped when it is the
same passage, else it becomes `<id>@<line>`.
"""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path

from dataforge.errors import InputError

__all__ = ["FIELDS", "Seed", "SeedFile", "Skipped", "read_seeds"]

FIELDS = ("passage", "text", "content")
"""Names a passage goes by when none is given, most telling first."""

_LINES = (".jsonl", ".json", ".ndjson", ".jsonl.gz", ".json.gz", ".ndjson.gz")
_TEXTS = (".txt", ".md")
_META_LENGTH = 500
_NAMES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Seed:
    """One passage to start walks from."""

    id: str
    passage: str
    meta: Mapping[str, str]
    """The record's other short plain values, as text."""


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

    path: Path
    seeds: tuple[Seed, ...]
    """At least one, in the file's order."""
    skipped: tuple[Skipped, ...]
    field: str
    """The field the passages stood in; empty for texts."""

    @property
    def digest(self) -> str:
        """Hash of all ids and passages, in order."""
        digest = blake2b(digest_size=16)
        for seed in self.seeds:
            for text in (seed.id, seed.passage):
                encoded = text.encode()
                digest.update(len(encoded).to_bytes(8, "little") + encoded)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Found:
    """One record of the input, or why it is none."""

    number: str
    """Line, row or path within the input, for ids."""
    where: str
    record: Mapping[str, object] | str
    """The record; a text says why there is none."""


def read_seeds(path: Path, field: str | None = None) -> SeedFile:
    """The passages under `path`, from `field` or the first of `FIELDS` that a record has.

    InputError when nothing usable can be read, naming the fault and the remedy.
    """
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder")
    try:
        if path.is_dir() or path.name.endswith(_TEXTS):
            if field is not None:
                raise InputError(f"{path}: texts have no field {field!r}; leave --field out")
            found = _folder(path) if path.is_dir() else iter([_text(path, path.name)])
            return _sorted_out(path, found, "passage")
        if path.name.endswith(".parquet"):
            return _sorted_out(path, _rows(path, field), field)
        if path.name.endswith(_LINES):
            return _sorted_out(path, _lines(path), field)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    raise InputError(
        f"{path}: {path.suffix or 'a name without a suffix'} is no kind of seeds known here; give "
        f".jsonl, .jsonl.gz, .parquet or a folder of {' and '.join(_TEXTS)} files"
    )


def _sorted_out(path: Path, found: Iterator[_Found], field: str | None) -> SeedFile:
    """Seeds and what was skipped; settles the field and makes ids unique."""
    seeds: dict[str, Seed] = {}
    skipped: list[Skipped] = []
    names: dict[str, None] = {}
    for each in found:
        if isinstance(each.record, str):
            skipped.append(Skipped(each.where, each.record))
            continue
        names |= dict.fromkeys(each.record)
        field = field or next((name for name in FIELDS if name in each.record), None)
        passage, fault = _passage(each.record, field)
        if fault:
            skipped.append(Skipped(each.where, fault))
            continue
        own = _plain(each.record.get("id"))
        id_ = own or f"{_stem(path)}:{each.number}"
        while (taken := seeds.get(id_)) is not None and taken.passage != passage:
            id_ = f"{id_}@{each.number}"
        if taken is not None:
            skipped.append(Skipped(each.where, f"repeats the id {id_!r} with the same passage"))
            continue
        meta = {
            name: said
            for name, value in each.record.items()
            if name not in ("id", field) and (said := _plain(value))
        }
        seeds[id_] = Seed(id_, passage, meta)
    if not seeds:
        raise InputError(_nothing(path, skipped, names, field))
    return SeedFile(path, tuple(seeds.values()), tuple(skipped), field or "")


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


def _nothing(
    path: Path, skipped: list[Skipped], names: Mapping[str, None], field: str | None
) -> str:
    """Why an input yielded no seed at all."""
    if not skipped:
        return f"{path}: is empty; give one JSON object a line, or texts"
    if names and (field is None or field not in names):
        shown = ", ".join(list(names)[:_NAMES_SHOWN])
        near = get_close_matches(field or FIELDS[0], names, n=1)
        return (
            f"{path}: no record has {f'a field {field!r}' if field else ' or '.join(FIELDS)}"
            f"{f'; did you mean {near[0]!r}?' if near else '.'} Fields found: {shown}. Name the "
            f"one that holds the passage with --field NAME"
        )
    hint = "" if names or path.is_dir() else "; the file needs one whole JSON object on each line"
    return f"{path}: no usable passage; {len(skipped)} skipped, the first {skipped[0]}{hint}"


def _lines(path: Path) -> Iterator[_Found]:
    """The records of a file of JSON lines; blank lines are passed over."""
    with path.open("rb") as file:
        head = file.read(3)
    if path.suffix == ".gz" and head and not head.startswith(b"\x1f\x8b"):
        raise InputError(f"{path}: is not gzip, though its name ends in .gz; rename or compress it")
    number = 0
    try:
        with gzip.open(path) if head.startswith(b"\x1f\x8b") else path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if number == 1:
                    line = _without_mark(path, line)
                if line.strip():
                    yield _Found(str(number), f"{path}:{number}", _record(line))
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
        frame = pl.read_parquet(path, columns=plain)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"{path}: is no Parquet file that can be read ({str(error).splitlines()[0]}); write or "
            f"fetch it again"
        ) from error
    for number, row in enumerate(frame.iter_rows(named=True), start=1):
        yield _Found(str(number), f"{path}: row {number}", row)


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


def _text(file: Path, number: str) -> _Found:
    raw = file.read_bytes()
    try:
        text = _without_mark(file, raw).decode("utf-8")
    except UnicodeDecodeError as error:
        return _Found(number, str(file), f"is not UTF-8 at byte {error.start + 1}")
    return _Found(number, str(file), {"passage": text, "id": number})


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
