"""A walk's record between two steps, and how a step changes it: the run-time twin of the plan."""

from __future__ import annotations

from collections.abc import Mapping

from dataforge.plan.shape import Conditions

__all__ = ["Record", "Rejected", "after", "entry"]

Record = Mapping[str, object]
"""Field -> value; a field that is not in it is absent. Never changed, only replaced."""


class Rejected(Exception):
    """Ends a walk whose promises could not be kept; raised to the walk's own frame, no further."""

    def __init__(self, node: str, reason: str, detail: str) -> None:
        super().__init__(f"{node}: {reason}: {detail}")
        self.node = node
        self.reason = reason
        self.detail = detail


def entry(conditions: Conditions, record: Record) -> Record:
    """The fresh record that a loop or graph with these preconditions is called with."""
    return {
        field: record[field]
        for field, shape in conditions.items()
        if shape is not None and field in record
    }


def after(postconditions: Conditions, record: Record, given: Record) -> Record:
    """`record` once an action with these postconditions has given `given`; all else persists."""
    kept = {field: value for field, value in record.items() if field not in postconditions}
    new = {
        field: given[field]
        for field, shape in postconditions.items()
        if shape is not None and given.get(field) is not None
    }
    return kept | new
