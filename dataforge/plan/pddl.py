"""Writes actions and a goal as a PDDL domain and problem that any classical planner reads.

PDDL knows no sets of values, so a condition becomes the ground atom that what is known of a field
meets it, and an action's effects are those atoms its promise entails: the planner's own reading,
grounded, hence exact. `present` stands for "is there, or may be", so that `Absent` is the negative
precondition it is in PDDL and a drop the delete effect. What is lost is the meaning of a condition
to other tools; its English stands beside it as a comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dataforge.plan.action import Action
from dataforge.plan.shape import Conditions, Known, Shape, entails, say
from dataforge.plan.space import entry
from dataforge.plan.states import repeatable

__all__ = ["domain_and_problem"]

_RESERVED = (
    *("and", "or", "not", "imply", "exists", "forall", "when", "either", "object", "number"),
    *("define", "domain", "problem", "total-cost", "increase", "decrease", "assign", "scale-up"),
    *("scale-down", "minimize", "maximize", "at", "over", "all", "start", "end", "always"),
    *("oneof", "present", "meets", "done", "field", "condition", "node"),
)


def domain_and_problem(
    name: str, actions: Sequence[Action], have: Conditions, want: Conditions
) -> tuple[str, str]:
    """The texts of domain.pddl and problem.pddl: from what one `have`s to what one `want`s.

    Needs `:strips`, `:typing` and `:negative-preconditions`. The same input gives the same texts.
    """
    ordered = sorted(actions, key=lambda action: action.name)
    writer = _Writer(name, ordered, want)
    return writer.domain(), writer.problem(have, want)


class _Writer:
    def __init__(self, name: str, actions: Sequence[Action], want: Conditions) -> None:
        self.actions = actions
        needs = [each for action in actions for each in action.requires.items()]
        conditions = [*needs, *want.items()]
        written = {field for action in actions for field in action.postconditions}
        named = _namer()
        self.name = named(name)
        fields = sorted({field for field, _ in conditions} | written)
        self.field = {field: named(field) for field in fields}
        shapes = {shape for _, shape in conditions if shape is not None}
        self.condition = {
            shape: named(say(shape)) for shape in sorted(shapes, key=lambda s: (say(s), repr(s)))
        }
        self.action = {action.name: named(action.name) for action in actions}
        self.wanted: dict[str, list[Shape]] = {field: [] for field in fields}
        for field, shape in dict.fromkeys(conditions):
            if shape is not None:
                self.wanted[field].append(shape)
        again = repeatable(actions)
        self.once = {
            action.name: named(f"run of {action.name}")
            for number, action in enumerate(actions)
            if again >> number & 1
        }

    def domain(self) -> str:
        types = "field condition node" if self.once else "field condition"
        done = ["    (done ?n - node) ; it has run, and runs once a walk"] if self.once else []
        nodes = [f"    {name} - node" for name in self.once.values()]
        return "\n".join(
            [
                f"(define (domain {self.name})",
                "  (:requirements :strips :typing :negative-preconditions)",
                f"  (:types {types})",
                "  (:constants",
                *(f"    {name} - field" for name in self.field.values()),
                *(
                    f"    {name} - condition ; {_line(say(shape))}"
                    for shape, name in self.condition.items()
                ),
                *nodes,
                "  )",
                "  (:predicates",
                "    (present ?f - field) ; it is there, or may be",
                "    (meets ?f - field ?c - condition) ; what is known of it is all within this",
                *done,
                "  )",
                *(line for action in self.actions for line in self._action(action)),
                ")",
                "",
            ]
        )

    def problem(self, have: Conditions, want: Conditions) -> str:
        known = entry(have)
        goal = [atom for field, shape in want.items() for atom in self._needed(field, shape)]
        return "\n".join(
            [
                f"(define (problem {self.name}-problem)",
                f"  (:domain {self.name})",
                "  (:init",
                *(f"    {atom}" for field in self.field for atom in self._facts(field, known)),
                "  )",
                "  (:goal (and",
                *(f"    {atom}" for atom in goal),
                "  ))",
                ")",
                "",
            ]
        )

    def _action(self, action: Action) -> list[str]:
        name = self.action[action.name]
        needed = [
            atom for field, shape in action.requires.items() for atom in self._needed(field, shape)
        ]
        effects = [
            atom
            for field, shape in action.postconditions.items()
            for atom in self._effects(field, shape)
        ]
        if action.name in self.once:
            needed.append(f"(not (done {self.once[action.name]}))")
            effects.append(f"(done {self.once[action.name]})")
        return [
            f"  (:action {name}" + (f" ; {_line(action.name)}" if name != action.name else ""),
            "    :parameters ()",
            "    :precondition (and",
            *(f"      {atom}" for atom in needed),
            "    )",
            "    :effect (and",
            *(f"      {atom}" for atom in effects),
            "    )",
            "  )",
        ]

    def _needed(self, field: str, want: Shape | None) -> list[str]:
        if want is None:
            return [f"(not (present {self.field[field]}))"]
        return [f"(meets {self.field[field]} {self.condition[want]})"]

    def _facts(self, field: str, known: Known) -> list[str]:
        have = known.get(field)
        atoms = [] if have is None else [f"(present {self.field[field]})"]
        return atoms + [self._meets(field, want) for want in self._met(field, have)]

    def _effects(self, field: str, given: Shape | None) -> list[str]:
        present = f"(present {self.field[field]})"
        met = self._met(field, given)
        lost = [want for want in self.wanted[field] if want not in met]
        return [
            f"(not {present})" if given is None else present,
            *(self._meets(field, want) for want in met),
            *(f"(not {self._meets(field, want)})" for want in lost),
        ]

    def _met(self, field: str, have: Shape | None) -> list[Shape]:
        return [want for want in self.wanted[field] if entails(have, want)]

    def _meets(self, field: str, want: Shape) -> str:
        return f"(meets {self.field[field]} {self.condition[want]})"


def _line(text: str) -> str:
    return " ".join(text.split())


def _namer() -> Callable[[str], str]:
    """Gives every text a name that PDDL allows and that no other has, letter case aside."""
    taken = set(_RESERVED)

    def named(text: str) -> str:
        for sign, word in ((">=", "-ge-"), ("<=", "-le-"), (">", "-gt-"), ("<", "-lt-")):
            text = text.replace(sign, word)
        plain = re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-_")
        plain = plain if plain[:1].isalpha() else f"n-{plain}".strip("-")
        name, number = plain, 1
        while name in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name)
        return name

    return named
