"""Which endpoints serve a role's model: one, several named together, or those of a file.

    http://a:8000/v1#NAME                               one, as any other spec
    http://a:8000/v1#NAME http://b:8000/v1#NAME         several of one model, apart by spaces
    workers:FILE                                        those that a file lists, at any time

An endpoint's `?share=2` gives it twice the calls of one without. They must all serve the same
weights, since a reply's identity does not say who gave it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dataforge.errors import UnknownModel
from dataforge.models.specs import read_spec, weights_of
from dataforge.models.workers import read_workers

__all__ = ["Pool", "address_of", "read_pool"]

_FILE = "workers:"
_ADDRESS = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Pool:
    """What a role's spec names."""

    specs: tuple[str, ...]
    """One a model to open, at least one."""
    file: Path | None = None
    """The file that lists them, where they may change."""


def read_pool(text: str) -> Pool:
    """The endpoints of a role's spec, each spec checked.

    Raises UnknownModel for what is no spec, for endpoints of different weights, and InputError for
    a file of workers that cannot be read or lists none.
    """
    text = text.strip()
    if text.startswith(_FILE):
        file = Path(text.removeprefix(_FILE)).expanduser()
        specs = read_workers(file)
        if not specs:
            raise UnknownModel(
                f"{text}: lists no worker yet; `dataforge workers add URL --file {file}` adds one"
            )
        return Pool(specs, file)
    if not text.startswith(_ADDRESS):
        read_spec(text)
        return Pool((text,))
    parts = tuple(text.split())
    for part in parts:
        if not part.startswith(_ADDRESS):
            raise UnknownModel(f"{text}: {part!r} is no endpoint, as those beside it are")
        read_spec(part)
        if weights_of(part) != weights_of(parts[0]):
            raise UnknownModel(
                f"{part}: serves {weights_of(part)}, and {parts[0]} {weights_of(parts[0])}; one "
                "role has one model. If they are the same, say so with ?weights=NAME"
            )
    return Pool(tuple(dict.fromkeys(parts)))


def address_of(text: str) -> str:
    """What specs that share a limit have in common: an endpoint's address, else the model."""
    spec = read_spec(text)
    if spec.form == "http":
        return spec.name.partition("#")[0].rstrip("/").lower()
    served = spec.form in ("hosted", "anthropic")
    return f"{spec.form}:{spec.name}" if served else text.strip()
