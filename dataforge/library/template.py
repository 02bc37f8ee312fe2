"""Templates of content files: `{name}` is replaced, `{{` and `}}` are literal, nothing else.

Strict on purpose: no attribute access, no format specification, no expression, so that a template
from a stranger's library can read only the fields it names, and a template that names something
unknown is found when the file is loaded and not after an hour of calls. Values are never scanned
again for placeholders, so braces in a passage stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dataforge.errors import LibraryError

__all__ = ["Template"]

_TOKEN = re.compile(r"\{\{|\}\}|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|[{}]")


@dataclass(frozen=True, slots=True)
class Template:
    """Text with holes."""

    parts: tuple[tuple[str, str | None], ...]
    """(text, name of the hole after it); the last part may have no hole."""

    @classmethod
    def parse(cls, text: str, where: str) -> Template:
        """The template that `text` means; LibraryError naming `where` for a lone or odd brace."""
        parts: list[tuple[str, str | None]] = []
        literal, end = "", 0
        for token in _TOKEN.finditer(text):
            literal += text[end : token.start()]
            end = token.end()
            if name := token["name"]:
                parts.append((literal, name))
                literal = ""
            elif len(token[0]) == 2:
                literal += token[0][0]
            else:
                around = text[token.start() : token.start() + 30].splitlines()[0]
                raise LibraryError(
                    f"{where}: a lone {token[0]!r} at {around!r}; a hole is written {{name}}, with "
                    f"a plain name and nothing else; a literal brace is written twice"
                )
        literal += text[end:]
        if literal or not parts:
            parts.append((literal, None))
        return cls(tuple(parts))

    @property
    def names(self) -> frozenset[str]:
        """What the holes ask for."""
        return frozenset(name for _, name in self.parts if name is not None)

    def inlined(self, given: Mapping[str, Template], where: str) -> Template:
        """The template with the holes in `given` replaced by those templates, at any depth."""
        return Template(tuple(self._inline(given, where, ())))

    def _inline(
        self, given: Mapping[str, Template], where: str, within: tuple[str, ...]
    ) -> Iterator[tuple[str, str | None]]:
        for text, name in self.parts:
            if name is None or name not in given:
                yield text, name
                continue
            if name in within:
                circle = " -> ".join((*within[within.index(name) :], name))
                raise LibraryError(f"{where}: these keys name each other in a circle: {circle}")
            yield text, None
            yield from given[name]._inline(given, where, (*within, name))

    def fill(self, values: Mapping[str, object]) -> str:
        """The text with every hole filled; KeyError for a hole that `values` lacks."""
        return "".join(
            text if name is None else f"{text}{values[name]}" for text, name in self.parts
        )
