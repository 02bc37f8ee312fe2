"""The pages a user reads, taken apart: fenced blocks, links, and code within the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CHECKOUT", "PAGES", "Fence", "anchors", "code_spans", "fences", "links", "table"]

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = (CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md")))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (?P<path>(?:nodes|graphs|judges|trainers)/\S+)(?P<add> \(add at the end\))?")


@dataclass(frozen=True, slots=True)
class Fence:
    """One fenced block."""

    page: Path
    line: int
    """Of its opening fence, from 1."""
    language: str
    text: str
    section: str
    """The heading it stands under."""

    @property
    def file(self) -> str:
        """The content file it says to write, relative to a checkout; empty when it names none."""
        found = _FILE.fullmatch(self.text.partition("\n")[0])
        return found["path"] if found else ""

    @property
    def adds(self) -> bool:
        """It goes to the end of a file that is there."""
        return self.text.partition("\n")[0].endswith("(add at the end)")

    @property
    def commands(self) -> list[str]:
        """Its commands, where it is of `sh`, comments included; a quoted one may span lines."""
        found: list[str] = []
        for line in self.text.splitlines():
            if found and found[-1].count("'") % 2:
                found[-1] += f"\n{line}"
            elif line.strip():
                found.append(line)
        return found

    def __str__(self) -> str:
        return f"{self.page.relative_to(CHECKOUT)}:{self.line}"


def fences(page: Path, *languages: str) -> list[Fence]:
    """The fenced blocks of a page, of these languages or of all."""
    text = page.read_text(encoding="utf-8")
    found: list[Fence] = []
    section, end = "", 0
    for block in _FENCE.finditer(text):
        headings = re.findall(r"^#+ .+$", text[end : block.start()], re.MULTILINE)
        section, end = (headings[-1] if headings else section), block.end()
        if not languages or block[1] in languages:
            line = text.count("\n", 0, block.start()) + 1
            found.append(Fence(page, line, block[1], block[2], section))
    return found


def _prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Every link to a file of the project: the file, and the anchor in it or an empty text."""
    for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        if not re.match(r"[a-z]+:", target):
            file, _, anchor = target.partition("#")
            yield ((page.parent / file).resolve() if file else page), anchor


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make."""
    headings = re.findall(r"^#+ (.+)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def code_spans(page: Path) -> list[str]:
    """Every piece of code within the text."""
    return re.findall(r"`([^`\n]+)`", _prose(page))


def table(page: Path, section: str, number: int = 0) -> list[str]:
    """What the first cells of a table name, in order; a cell may name several things.

    `section` is the heading that the table stands under, `number` which of its tables, from 0.
    """
    _, _, after = _prose(page).partition(f"# {section}\n")
    text = re.split(r"^#+ ", after, maxsplit=1, flags=re.MULTILINE)[0]
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) > number, f"{page.name}, {section}: there are {len(tables)} tables"
    return [
        name
        for row in tables[number].splitlines()[2:]
        for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])
    ]
