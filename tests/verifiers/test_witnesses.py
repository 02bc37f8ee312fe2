from __future__ import annotations

from pathlib import Path

import pytest

from dataforge.errors import DeclarationError
from dataforge.verifiers.witnesses import (
    Verifier,
    Witness,
    read_witnesses,
    run_witnesses,
    standard_verifiers,
)


def some(passing: int, failing: int, hostile: bool = True) -> tuple[Witness, ...]:
    outcomes = [True] * passing + [False] * failing
    return tuple(
        Witness(name=f"w{number}", text="ok" if passes else "bad", passes=passes, hostile=hostile)
        for number, passes in enumerate(outcomes)
    )


@pytest.mark.parametrize("verifier", standard_verifiers(), ids=lambda verifier: verifier.name)
def test_every_standard_verifier_does_as_its_witnesses_say(verifier: Verifier) -> None:
    assert [failure.say() for failure in run_witnesses([verifier])] == []


@pytest.mark.parametrize("verifier", standard_verifiers(), ids=lambda verifier: verifier.name)
def test_witnesses_of_a_verifier_have_names_of_their_own(verifier: Verifier) -> None:
    names = [witness.name for witness in verifier.witnesses]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("witnesses", "found"),
    [
        (some(2, 3), "2 passing, 3 failing and 5 hostile"),
        (some(3, 2), "3 passing, 2 failing and 5 hostile"),
        (some(3, 3, hostile=False), "3 passing, 3 failing and 0 hostile"),
    ],
)
def test_a_verifier_without_enough_witnesses_cannot_be_made(
    witnesses: tuple[Witness, ...], found: str
) -> None:
    with pytest.raises(DeclarationError, match=found):
        Verifier("mine", lambda text, _: text == "ok", witnesses)


def test_a_verifier_that_errs_is_caught_by_its_witnesses() -> None:
    lax = Verifier("lax", lambda text, source: True, some(3, 3))
    said = [failure.say() for failure in run_witnesses([lax])]
    assert said[0] == "lax: witness 'w3' should fail and passed"
    assert len(said) == 3


@pytest.mark.parametrize("line", ['{"name": "x"}', "[]", "not json"])
def test_a_line_that_is_no_witness_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "x.witnesses.jsonl"
    file.write_text('{"name": "a", "text": "b", "passes": true}\n' + line + "\n")
    with pytest.raises(DeclarationError, match=r"x\.witnesses\.jsonl:2: not a witness"):
        read_witnesses(file)
