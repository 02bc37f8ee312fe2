"""Where a struct's field stands in its author's file, for errors.

The file is read and parsed anew, so it is looked up only when there is something to say.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

__all__ = ["field_line"]


def field_line(struct: type, field: str) -> str:
    """`file.py:12: ` of the field, or of its class; empty for a class that stands in no file."""
    path = Path(getattr(sys.modules.get(struct.__module__), "__file__", None) or "")
    if path.suffix != ".py" or not path.is_file():
        return ""
    found = None
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef) and node.name == struct.__name__:
            named = [
                each.lineno
                for each in node.body
                if isinstance(each, ast.AnnAssign)
                and isinstance(each.target, ast.Name)
                and each.target.id == field
            ]
            found = named[0] if named else found or node.lineno
    return "" if found is None else f"{path.name}:{found}: "
