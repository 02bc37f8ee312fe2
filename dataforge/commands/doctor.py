"""`dataforge doctor`: what this machine has for DataForge, what is missing, and how to get it.

It looks, and runs what takes milliseconds; it opens no model and sends nothing anywhere. So it can
say that weights are there and whole, and not that they run.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from dataforge.commands.options import library_option
from dataforge.errors import DataForgeError

if TYPE_CHECKING:
    from dataforge.library.root import Library

__all__ = ["Finding", "command"]

_CORE = ("aiohttp", "annotated-types", "click", "networkx", "polars", "pydantic", "rich")
_EXTRAS = {
    # Extra -> (distribution -> module, what it is for)
    "embedded": ({"xllamacpp": "xllamacpp"}, "models in process, from GGUF files"),
    "embed": (
        {"sentence-transformers": "sentence_transformers", "datasketch": "datasketch"},
        "the default judge, and deduplication",
    ),
    "train": (
        {
            "torch": "torch",
            "transformers": "transformers",
            "gguf": "gguf",
            "safetensors": "safetensors",
            "numba": "numba",
        },
        "packing and training",
    ),
    "hosted": ({"litellm": "litellm"}, "providers by name, such as openai/gpt-4o-mini"),
    "vllm": ({"vllm": "vllm"}, "batches on a GPU, in process"),
    "ray": ({"ray": "ray"}, "runs over many machines"),
}
_DEMO = frozenset(
    {"xllamacpp", "sentence-transformers", "torch", "transformers", "gguf", "safetensors"}
)
"""What the demo cannot do without."""
_LEAST_MEMORY = 3.0
"""GiB: what loading the bundled model for training takes at its peak, and some."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    status: Literal["ok", "missing", "broken"]
    what: str
    said: str
    fix: str = ""
    """What to do; empty when there is nothing to do."""
    needed: bool = True
    """Whether the demo cannot do without it."""

    def __str__(self) -> str:
        fix = f"\n{'':10}{'->' if self.needed else 'if wanted:'} {self.fix}" if self.fix else ""
        return f"{self.status:9} {self.what:22} {self.said}{fix}"


@click.command(name="doctor")
@library_option
def command(library: Path | None) -> None:
    """Says what is installed and sound, what is missing, and how to get it.

    Looks at Python, packages and extras, the machine, the bundled weights, the content of the
    library, the verifiers' witnesses and the judges' agreement cards. Opens no model and sends
    nothing anywhere. Exit code 1 if the demo could not run.

    \b
    Example:
      dataforge doctor
    """
    lacking = 0
    for finding in _findings(library):
        click.echo(finding)
        lacking += finding.needed and finding.status != "ok"
    if lacking:
        click.echo(f"\n{lacking} to put right before `dataforge demo`: see the arrows above")
        raise click.exceptions.Exit(1)
    click.echo("\nall that `dataforge demo` needs is here")


def _findings(explicit: Path | None) -> Iterator[Finding]:
    yield _python()
    yield from _packages()
    yield from _machine()
    yield from _weights()
    try:
        from dataforge.library.root import find_library

        library = find_library(explicit)
    except (DataForgeError, ImportError) as error:
        yield Finding("broken", "library", str(error), "see the message")
        return
    yield from _content(library)
    yield from _verifiers()
    yield from _judges(library)


def _python() -> Finding:
    said = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding("ok", "python", f"{said}, {sys.executable}")


def _installed(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _packages() -> Iterator[Finding]:
    absent = [each for each in _CORE if not _installed(each)]
    if absent:
        fix = "pip install dataforge-dag, or make setup in a checkout"
        yield Finding("missing", "core packages", ", ".join(absent), fix)
    else:
        said = ", ".join(f"{each} {_installed(each)}" for each in _CORE)
        yield Finding("ok", "core packages", said)
    for extra, (packages, use) in _EXTRAS.items():
        absent = [each for each, module in packages.items() if find_spec(module) is None]
        if absent:
            fix = f"pip install 'dataforge-dag[{extra}]', for {use}"
            said = f"{', '.join(absent)} not installed"
            yield Finding("missing", f"extra {extra}", said, fix, bool(_DEMO & {*absent}))
        else:
            said = ", ".join(f"{each} {_installed(each)}" for each in packages)
            yield Finding("ok", f"extra {extra}", said)


def _machine() -> Iterator[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("ok", "cores", f"{cores}")
    memory = _memory()
    if memory is not None:
        low = memory < _LEAST_MEMORY
        fix = f"training the bundled model takes {_LEAST_MEMORY:g} GiB; close other programs"
        said = f"{memory:.1f} GiB available"
        yield Finding("broken" if low else "ok", "memory", said, fix if low else "", needed=False)
    gpu = shutil.which("nvidia-smi")
    yield Finding("ok", "gpu", "NVIDIA driver found" if gpu else "none; everything runs on the CPU")


def _memory() -> float | None:
    """Available memory in GiB, by the tighter of machine and container; None where unknown."""
    known: list[float] = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        known.append(int(fields["MemAvailable"].split()[0]) / 2**20)
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii").strip()
        if limit != "max":
            known.append((int(limit) - int(used)) / 2**30)
    except (OSError, KeyError, ValueError):
        # Another system, or a container without that file: what is known so far stands.
        return min(known, default=None)
    return min(known)


def _weights() -> Iterator[Finding]:
    from dataforge.models.embedded import smollm2_path
    from dataforge.models.embedding import minilm_path
    from dataforge.models.weights import file_weights

    for name, found, file in (
        ("SmolLM2", smollm2_path, ""),
        ("MiniLM", minilm_path, "model.safetensors"),
    ):
        try:
            path = found() / file
        except DataForgeError as error:
            # The message ends with the command that mends it.
            said, _, fix = str(error).rpartition("; ")
            yield Finding("missing", f"weights {name}", said, fix)
        else:
            yield Finding("ok", f"weights {name}", f"{file_weights(path)[:19]}…, {path}")


def _content(library: Library) -> Iterator[Finding]:
    from dataforge.library.catalogue import Catalogue
    from dataforge.library.graphs import graph_names, load_graph

    try:
        nodes = Catalogue.of(library).nodes
    except DataForgeError as error:
        yield Finding("broken", "nodes and rubrics", str(error), "mend the file it names")
        return
    yield Finding("ok", "nodes and rubrics", f"{len(nodes)} in {library.said()}")
    for name in graph_names(library):
        try:
            graph = load_graph(name, library).graph
        except DataForgeError as error:
            fix = f"dataforge check {name}"
            yield Finding("broken", f"graph {name}", str(error).splitlines()[0], fix)
        else:
            said = f"{len(graph.nodes)} nodes, {graph.count_walks():,} walks"
            yield Finding("ok", f"graph {name}", said)


def _verifiers() -> Iterator[Finding]:
    from dataforge.verifiers.witnesses import run_witnesses, standard_verifiers

    verifiers = standard_verifiers()
    failures = run_witnesses(verifiers)
    for failure in failures:
        yield Finding("broken", "verifier", failure.say(), "reinstall DataForge")
    if not failures:
        total = sum(len(each.witnesses) for each in verifiers)
        said = f"{len(verifiers)}, and all {total} witnesses as they should be"
        yield Finding("ok", "verifiers", said)


def _judges(library: Library) -> Iterator[Finding]:
    from dataforge.evals.card import load_card, say_card, stale

    for layer in library.layers():
        for path in layer.files("judges", ".py"):
            try:
                card = load_card(path)
            except DataForgeError as error:
                yield Finding("broken", f"judge {path.stem}", str(error), "measure it again")
                continue
            changed = stale(card, path) if card else ()
            told = say_card(card, changed).replace("\n", f"\n{'':10}")
            status: Literal["ok", "missing", "broken"] = "ok" if card and not changed else "missing"
            yield Finding(status, f"judge {path.stem}", f"\n{'':10}{told}", needed=False)
