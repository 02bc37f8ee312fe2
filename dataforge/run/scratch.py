"""A database of one process, on disk while it lasts and gone with it, even when it is killed.

What a run has to look up of a million seeds and walks would fill the memory. SQLite keeps it in an
unnamed file in the folder for temporary files (SQLITE_TMPDIR, TMPDIR, else the system's) behind a
cache of a fixed size. All of it can be made again from the run directory, so nothing is synced.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from dataforge.errors import RunError

__all__ = ["scratch"]

_CACHE_KIB = 2_000


class _Scratch(sqlite3.Connection):
    """Says in one line that there is no room."""

    def execute(self, sql: str, values: Sequence[object] = (), /) -> sqlite3.Cursor:  # type: ignore[override]
        try:
            return super().execute(sql, values)
        except sqlite3.OperationalError as error:
            raise _no_room(error) from error

    def executemany(self, sql: str, rows: Iterable[Sequence[object]], /) -> sqlite3.Cursor:  # type: ignore[override]
        try:
            return super().executemany(sql, rows)
        except sqlite3.OperationalError as error:
            raise _no_room(error) from error


def _no_room(error: sqlite3.OperationalError) -> RunError:
    return RunError(
        f"the folder for temporary files takes no more ({error}); make room there, or name another "
        "with TMPDIR, and give the same command again"
    )


def scratch(table: str) -> sqlite3.Connection:
    """A new database that holds one table, by its SQL; never shared, never committed."""
    # An empty name is SQLite's own for a file that is removed as soon as it is opened.
    # polars writes tables from a thread of its own, while the one that asked for them waits.
    base = sqlite3.connect("", isolation_level=None, check_same_thread=False, factory=_Scratch)
    for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{_CACHE_KIB}"):
        base.execute(f"PRAGMA {pragma}")
    base.execute("PRAGMA temp_store=FILE")
    base.execute(table)
    base.execute("BEGIN")
    return base
