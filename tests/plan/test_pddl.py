"""The PDDL we write is read by others, and asks the question that we answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pddl import parse_domain, parse_problem
from pddl.parser.domain import DomainParser
from pddl.parser.problem import ProblemParser
from pddl.parser.symbols import ALL_SYMBOLS

from dataforge.errors import UnreachableTarget
from dataforge.plan.action import Action
from dataforge.plan.goal import plans
from dataforge.plan.pddl import domain_and_problem
from dataforge.plan.shape import Conditions, Shape
from tests.plan.libraries import libraries
from tests.plan.scene import TEXT, acts, at_least, one_of

DOMAIN, PROBLEM = DomainParser(), ProblemParser()

Literal = tuple[bool, str]
"""Whether it is asserted, and the ground atom."""


def literals(formula: object) -> Iterator[Literal]:
    """The literals of a conjunction, as the `pddl` package parsed it."""
    if hasattr(formula, "operands"):
        for part in formula.operands:
            yield from literals(part)
    elif hasattr(formula, "argument"):
        yield False, str(formula.argument)
    else:
        yield True, str(formula)


def shortest(domain_text: str, problem_text: str) -> int | None:
    """Steps of the shortest plan, searched blindly over the parsed files; None where none is."""
    domain, problem = DOMAIN(domain_text), PROBLEM(problem_text)
    start = frozenset(str(atom) for atom in problem.init)
    goal = list(literals(problem.goal))
    actions = [
        (list(literals(action.precondition)), list(literals(action.effect)))
        for action in domain.actions
    ]
    seen, queue = {start}, deque([(start, 0)])
    while queue:
        state, steps = queue.popleft()
        if all((atom in state) is wanted for wanted, atom in goal):
            return steps
        for needed, effects in actions:
            if all((atom in state) is wanted for wanted, atom in needed):
                gone = {atom for added, atom in effects if not added}
                after = (state - gone) | {atom for added, atom in effects if added}
                if after not in seen:
                    seen.add(after)
                    queue.append((after, steps + 1))
    return None


@settings(max_examples=50)
@given(libraries())
def test_an_independent_search_finds_plans_of_the_length_of_ours(actions: list[Action]) -> None:
    have, want = actions[0].postconditions, actions[-1].preconditions
    found = shortest(*domain_and_problem("random", actions[1:-1], have, want))
    try:
        ours = len(plans(actions[1:-1], have, want, 1).found[0])
    except UnreachableTarget:
        assert found is None
        return
    assert found == ours


WORDS = st.text(min_size=1, max_size=12).filter(
    lambda text: text.isprintable() and text == text.strip() and not set("*?[:") & set(text)
)


@settings(max_examples=30)
@given(st.lists(WORDS, min_size=1, max_size=6, unique=True))
def test_any_names_and_values_become_legal_and_stay_apart(texts: list[str]) -> None:
    actions = [acts(text, {}, {"f": one_of(text)}) for text in texts]
    want: Conditions = {"f": one_of(texts[-1])}
    domain, problem = domain_and_problem(texts[0], actions, {}, want)
    assert len(DOMAIN(domain).actions) == len(texts)
    assert shortest(domain, problem) == 1


@pytest.mark.parametrize("word", sorted(word for word in ALL_SYMBOLS if word.isidentifier()))
def test_no_word_of_pddl_is_taken_for_a_name(word: str) -> None:
    want: Conditions = {word: one_of(word)}
    domain, problem = domain_and_problem(word, [acts(word, {}, {word: one_of(word)})], {}, want)
    assert shortest(domain, problem) == 1


def library() -> list[Action]:
    return [
        acts("transform/rap", {"passage": at_least(200)}, {"text": at_least(90)}),
        acts("ask", {"text": at_least(50), "question": None}, {"question": TEXT}),
        acts("trim", {"text": TEXT}, {"text": at_least(10)}),
        acts("tidy", {"question": TEXT, "text": TEXT}, {"text": None}),
    ]


HAVE: Conditions = {"passage": at_least(300)}
WANT: Conditions = {"question": TEXT, "text": None}


def test_conditions_read_as_pddl_says_them() -> None:
    domain, problem = domain_and_problem("small", library(), HAVE, WANT)
    assert "  (:requirements :strips :typing :negative-preconditions)\n" in domain
    assert (
        "    str-of-at-least-50-characters - condition ; str of at least 50 characters\n" in domain
    )
    assert (
        "  (:action ask\n"
        "    :parameters ()\n"
        "    :precondition (and\n"
        "      (not (present question))\n"
        "      (meets text str-of-at-least-50-characters)\n"
        "    )\n"
        "    :effect (and\n"
        "      (present question)\n"
        "      (meets question str)\n"
        "    )\n"
        "  )\n"
    ) in domain
    assert "(:action transform-rap ; transform/rap\n" in domain
    assert "(not (done run-of-trim))" in domain
    assert "(present passage)\n" in problem
    assert "  (:goal (and\n    (meets question str)\n    (not (present text))\n  ))\n" in problem


def test_the_same_library_in_another_order_is_the_same_text() -> None:
    assert domain_and_problem("small", library()[::-1], HAVE, WANT) == domain_and_problem(
        "small", library(), HAVE, WANT
    )


def test_the_pddl_package_reads_the_files(tmp_path: Path) -> None:
    for name, text in zip(
        ("domain.pddl", "problem.pddl"),
        domain_and_problem("small", library(), HAVE, WANT),
        strict=True,
    ):
        (tmp_path / name).write_text(text)
    domain = parse_domain(tmp_path / "domain.pddl")
    assert {str(action.name) for action in domain.actions} == {
        *("ask", "tidy", "transform-rap", "trim"),
    }
    assert parse_problem(tmp_path / "problem.pddl").domain_name == "small"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_an_optimal_planner_of_others_finds_the_same_plans(tmp_path: Path) -> None:
    from unified_planning.engines import CompilationKind
    from unified_planning.io import PDDLReader
    from unified_planning.shortcuts import Compiler, OneshotPlanner, get_environment

    get_environment().credits_stream = None
    cases: list[tuple[Conditions, Conditions]] = [
        (HAVE, WANT),
        (HAVE, {"question": TEXT}),
        ({"text": at_least(60)}, {"question": TEXT}),
        (HAVE, {"text": Shape(str, min_len=10)}),
    ]
    for have, want in cases:
        paths = [tmp_path / "domain.pddl", tmp_path / "problem.pddl"]
        for path, text in zip(paths, domain_and_problem("s", library(), have, want), strict=True):
            path.write_text(text)
        problem = PDDLReader().parse_problem(*map(str, paths))
        kind = CompilationKind.NEGATIVE_CONDITIONS_REMOVING
        with Compiler(problem_kind=problem.kind, compilation_kind=kind) as compiler:
            positive = compiler.compile(problem, kind)
        with OneshotPlanner(name="pyperplan-opt") as planner:
            solved = planner.solve(positive.problem)
        names = [
            action.action.name
            for action in solved.plan.replace_action_instances(
                positive.map_back_action_instance
            ).actions
        ]
        shortest_of_ours = plans(library(), have, want, 1).found[0]
        assert names == [action.name.replace("/", "-") for action in shortest_of_ours]
