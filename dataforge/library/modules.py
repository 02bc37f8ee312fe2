"""Content modules: Python files loaded by path, under names that cannot meet an installed package.

`nodes/transform/haiku.py` of library `mine` is `dataforge_library.mine.nodes.transform.haiku`, and
so `import nodes` still means whatever the user installed under that name. A file is run anew each
time it is loaded: a long process sees what was edited, and two libraries of one name do not mix.
Loading runs the file; a library is as trusted as a package one installs.
"""

from __future__ import annotations

import re
import sys
import textwrap
import traceback
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, MappingProxyType, ModuleType

from pydantic import ValidationError

from dataforge.errors import DataForgeError, DeclarationError, LibraryError
from dataforge.library.root import Library
from dataforge.library.tables import shown

__all__ = ["load_module"]


class _Uncached(SourceFileLoader):
    """Compiles the file each time: no `__pycache__` in content, and no stale one believed."""

    def get_code(self, fullname: str) -> CodeType:
        data = self.get_data(self.path)
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            # A file is read as UTF-8 for digests too, whatever its first line declares.
            line = data.count(b"\n", 0, error.start) + 1
            said = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
            raise SyntaxError(said, (self.path, line, None, None)) from None
        code = self.source_to_code(data, self.path)
        assert isinstance(code, CodeType)
        return code


def load_module(
    library: Library, path: Path, given: Mapping[str, object] = MappingProxyType({})
) -> ModuleType:
    """The file as a module; LibraryError naming file and line when it does not load.

    `given`: global name -> value, there before the file's first line runs.
    """
    relative = path.resolve().relative_to(library.root.resolve()).with_suffix("")
    parts = (library.name, *relative.parts)
    name = ".".join(("dataforge_library", *(re.sub(r"\W", "_", part) for part in parts)))
    spec = spec_from_file_location(name, path, loader=_Uncached(name, str(path)))
    if spec is None or spec.loader is None:
        raise LibraryError(f"{shown(path)}: is not a Python file that can be loaded")
    module = module_from_spec(spec)
    vars(module).update(given)
    # Pydantic looks classes up in sys.modules while the file still runs.
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    # A file that exits would end the command, and with status 0 if it likes.
    except (Exception, SystemExit) as error:
        sys.modules.pop(name)
        if before is not None:
            sys.modules[name] = before
        raise _explained(path, error) from error
    return module


def _explained(path: Path, error: Exception | SystemExit) -> DataForgeError:
    """What went wrong in the file's own words and line."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == path
    ]
    if isinstance(error, SyntaxError) and error.lineno is not None and error.filename == str(path):
        lines.append(error.lineno)
    at = f"{shown(path)}:{lines[-1]}" if lines else shown(path)
    if isinstance(error, DataForgeError):
        kind = type(error) if isinstance(error, DeclarationError) else LibraryError
        inside = f"{path.name}:"
        said = str(error)
        # A node that cannot be declared names its own line, which is closer than the traceback's.
        if said.startswith(inside):
            return kind(f"{shown(path)}:{said.removeprefix(inside)}")
        return kind(f"{at}: {said}")
    if isinstance(error, ModuleNotFoundError):
        return LibraryError(
            f"{at}: imports {error.name!r}, which is not installed; install it, or leave it out "
            f"(content imports dataforge and installed packages, never other content)"
        )
    return LibraryError(f"{at}: does not load: {_said(path, error)}")


def _said(path: Path, error: Exception | SystemExit) -> str:
    """The kind of an error and what it says, in one line."""
    said = str(error)
    if isinstance(error, SyntaxError):
        said, file = error.msg, error.filename
        if file is not None and file != str(path):
            said += f" ({shown(Path(file))}:{error.lineno})"
    elif isinstance(error, ValidationError):
        problems = error.errors(include_url=False)
        said = f"{error.title}: " + "; ".join(
            ": ".join((".".join(map(str, each["loc"])) or "it", each["msg"])) for each in problems
        )
    kind = type(error).__name__
    return textwrap.shorten(f"{kind}: {said}" if said else kind, 300, placeholder=" …")
