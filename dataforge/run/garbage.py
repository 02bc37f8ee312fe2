"""How often the process looks for garbage while it runs walks.

A walk leaves few cycles behind and thousands of objects that live for a moment; Python's own
thresholds have it search them all some hundred times a second, for an eighth of the CPU of a call.
It is the process's business, so the command line asks for it and no library code does.
"""

from __future__ import annotations

import gc

__all__ = ["collect_seldom"]


def collect_seldom() -> None:
    """Collects once, sets what is there aside for good, and then collects seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
