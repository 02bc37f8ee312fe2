"""Finding libraries: folders of content that the engine reads by path and refers to by name.

Libraries lie in layers. On top the one that was asked for (`--library DIR`), else the working
directory if it is one; below it every installed one (entry points `dataforge.libraries`, by name);
at the bottom the standard library. All are read; where two define the same name, the upper one
wins. So a graph copied into one's own library and edited there still finds every standard node,
and a transformation dropped into one's own library joins the standard graphs.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from dataforge.errors import LibraryError
from dataforge.library.tables import named, nearest, shown

__all__ = ["FOLDERS", "STANDARD", "Library", "find_library"]

FOLDERS = ("nodes", "graphs", "judges", "seeds", "trainers")
STANDARD = "standard"


@dataclass(frozen=True, slots=True)
class Library:
    """One folder of content, and the libraries searched after it."""

    name: str
    """Of its folder; `standard` for the one that comes with the engine."""
    root: Path
    beneath: Library | None = None

    def layers(self) -> tuple[Library, ...]:
        """This library and those beneath it, uppermost first."""
        return (self, *(self.beneath.layers() if self.beneath else ()))

    def files(self, folder: str, *suffixes: str) -> tuple[Path, ...]:
        """Content files of this layer's folder at any depth, sorted; hidden ones left out."""
        top = self.root / folder
        return tuple(
            path
            for path in sorted(top.rglob("*"))
            if path.suffix in suffixes
            and path.is_file()
            and not any(part.startswith((".", "__")) for part in path.relative_to(top).parts)
        )

    def find(self, folder: str, name: str, *suffixes: str) -> Path:
        """The uppermost file of that name, its suffix left out or not; LibraryError otherwise."""
        found: dict[str, Path] = {}
        for layer in reversed(self.layers()):
            for path in layer.files(folder, *suffixes):
                relative = path.relative_to(layer.root / folder)
                found[relative.as_posix()] = path
                found[relative.with_suffix("").as_posix()] = path
        if name not in found:
            there = {key for key in found if not key.endswith(suffixes)}
            raise LibraryError(
                f"there is no {folder}/{name} in {self.said()}{nearest(name, there)}"
                f" There are: {named(there)}"
            )
        return found[name]

    def said(self) -> str:
        """The layers in words, for messages."""
        return ", ".join(f"{layer.name} ({shown(layer.root)})" for layer in self.layers())


def find_library(explicit: Path | None = None) -> Library:
    """The layers to read content from; LibraryError if `explicit` is no library."""
    roots: list[tuple[str, Path]] = []
    here = Path.cwd()
    if explicit is not None:
        if not _is_library(explicit):
            what = "is not a directory" if not explicit.is_dir() else "holds no content"
            raise LibraryError(
                f"--library {explicit}: {what}; a library is a folder with nodes/ or graphs/ in "
                f"it (`dataforge init {explicit}` makes one)"
            )
        roots.append((explicit.resolve().name, explicit.resolve()))
    elif _is_library(here):
        roots.append((here.name, here))
    for point in sorted(entry_points(group="dataforge.libraries"), key=lambda point: point.name):
        roots.append((point.name, _installed(point.name, point.value)))
    standard = _standard()
    library = Library(STANDARD, standard)
    for name, root in reversed(roots):
        if root.resolve() != standard.resolve():
            library = Library(name, root, library)
    return library


def _is_library(path: Path) -> bool:
    """Whether a folder looks like content rather than like somebody's unrelated `nodes/`."""
    return any((path / "graphs").glob("*.toml")) or any(
        entry.suffix in (".toml", ".py") for entry in (path / "nodes").glob("**/*")
    )


def _installed(name: str, module: str) -> Path:
    """The folder of an installed library, found without importing its package."""
    spec = find_spec(module.partition(":")[0])
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise LibraryError(
            f"the installed library {name!r} points at {module!r}, which is no package; "
            f"reinstall or uninstall the package that offers it"
        )
    return Path(folders[0])


def _standard() -> Path:
    """Where the standard library lies: in the wheel beside the engine, else in the checkout."""
    engine = Path(__file__).resolve().parent.parent
    packed = engine / "_standard"
    return packed if packed.is_dir() else engine.parent
