from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.evals.agreement import bare_rubric
from dataforge.evals.card import load_card, measure, stale
from dataforge.evals.pairs import FAULTS, read_pairs
from dataforge.models.judge import Case, Judge
from dataforge.verifiers.verdict import Verdict
from dataforge.verifiers.words import words

FILE = Path(__file__).parents[2] / "judges" / "likeness.py"
REQUEST = "Explain how the scouts of a swarm of bees choose a hollow for the new home."
GOOD = (
    "The scouts of the swarm fly out, and each that finds a hollow dances for it. Other bees look "
    "at the hollow themselves. In the end the scouts choose the home with most dancers."
)


class Bag:
    """Embeds a text as the bag of its words."""

    weights = "bag"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.row(text) for text in texts]

    def row(self, text: str) -> list[float]:
        row = [0.0] * 512
        for word in words(text):
            row[crc32(word.folded.encode()) % 512] += 1
        length = math.hypot(*row) or 1.0
        return [value / length for value in row]


@pytest.fixture(scope="module")
def likeness() -> ModuleType:
    spec = spec_from_file_location("likeness_under_test", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def judge(likeness: ModuleType) -> Judge:
    made: Judge = likeness.LikenessJudge(Bag())
    return made


def verdict(judge: Judge, answer: str, instruction: str = REQUEST, **marks: float) -> Verdict:
    case = Case(instruction=instruction, answer=answer)
    return asyncio.run(judge.judge(case, bare_rubric(**marks)))


def test_a_good_answer_passes_without_feedback(judge: Judge) -> None:
    found = verdict(judge, GOOD)
    assert (found.status, found.feedback) == ("pass", "")
    assert found.score == min(score for score in found.scores.values() if score is not None)


def test_criteria_it_cannot_tell_are_left_open(judge: Judge) -> None:
    scores = verdict(judge, GOOD).scores
    assert {name for name, score in scores.items() if score is None} == {
        *("complexity", "style", "tone")
    }


def test_an_answer_about_something_else_is_sent_back_to_the_request(judge: Judge) -> None:
    found = verdict(judge, "Pancakes want two eggs, a cup of milk and a little patience.")
    assert found.status == "fail"
    assert found.feedback == f"Answer the request itself, and stay with it: “{REQUEST}”"


def test_a_loop_is_quoted_back(judge: Judge) -> None:
    found = verdict(judge, GOOD + " The scouts choose a hollow." * 6)
    assert found.status == "fail"
    assert "You repeat “The scouts choose" in found.feedback


def test_an_unfinished_answer_is_shown_its_end(judge: Judge) -> None:
    found = verdict(judge, f"{GOOD} Then the whole swarm of bees flies to the")
    assert found.status == "fail"
    assert "Finish the last sentence" in found.feedback
    assert "swarm of bees flies to the”" in found.feedback


def test_an_answer_cut_at_its_token_limit_fails_however_it_ends(judge: Judge) -> None:
    case = Case(instruction=REQUEST, answer=GOOD, truncated=True)
    found = asyncio.run(judge.judge(case, bare_rubric()))
    assert found.status == "fail"
    assert "was cut at its token limit" in found.feedback


def test_the_instruction_given_back_is_no_answer(judge: Judge) -> None:
    found = verdict(judge, f"Sure! {REQUEST}")
    assert found.status == "fail"
    assert found.feedback == "Do not copy the instruction; answer it in your own words."


def test_a_short_answer_in_the_instructions_own_words_is_no_echo(judge: Judge) -> None:
    found = verdict(judge, "A hollow.", "Which do bees prefer, a hollow or a box?")
    assert found.evidence["copied"] == 0.0


@pytest.mark.parametrize("answer", ["", "  \n", "… !!"])
def test_an_answer_without_words_fails_at_once(judge: Judge, answer: str) -> None:
    found = verdict(judge, answer)
    assert (found.status, found.score) == ("fail", 0.0)
    assert found.feedback.startswith("Write an answer")


def test_the_rubrics_marks_decide_what_passes(judge: Judge) -> None:
    score = verdict(judge, GOOD).score
    assert score is not None
    assert score < 1
    assert verdict(judge, GOOD, pass_mark=score).status == "pass"
    assert verdict(judge, GOOD, pass_mark=score + 0.01).status == "fail"
    assert verdict(judge, GOOD, pass_mark=0.1, floor=score + 0.01).status == "fail"


def test_every_failed_case_says_what_to_do(judge: Judge) -> None:
    found = verdict(judge, GOOD, pass_mark=1.0)
    assert found.status == "fail"
    assert found.feedback


async def test_cases_judged_together_get_the_verdicts_they_get_alone(likeness: ModuleType) -> None:
    cases = [Case(instruction=REQUEST, answer=GOOD[:size]) for size in range(20, 160, 20)]
    together = likeness.LikenessJudge(Bag())
    found = await asyncio.gather(*(together.judge(case, bare_rubric()) for case in cases))
    alone = [await likeness.LikenessJudge(Bag()).judge(case, bare_rubric()) for case in cases]
    assert list(found) == alone


def test_the_best_matching_stretch_of_a_long_text_counts(judge: Judge) -> None:
    filler = " ".join(f"Sentence{n} tells of matter{n} and thing{n}." for n in range(200))
    told = "Bees of the swarm dance for the home; scouts look, and each finds a hollow."
    without = verdict(judge, GOOD, f"Summarize.\n\n{filler}").scores["relevance"]
    found = verdict(judge, GOOD, f"Summarize.\n\n{filler}\n\n{told}").scores["relevance"]
    assert without is not None
    assert found is not None
    assert found > without + 0.2


@given(st.lists(st.sampled_from(["One two.", "a\nb", "three four five", "\n\n"]), max_size=30))
def test_the_parts_of_an_instruction_hold_all_its_words(
    likeness: ModuleType, pieces: list[str]
) -> None:
    instruction = " ".join(pieces)
    whole, *rest = likeness.parts(instruction)
    assert whole == instruction
    if rest:
        expected = [word.folded for word in words(instruction)]
        assert [word.folded for part in rest for word in words(part)] == expected


def test_opening_the_judge_loads_nothing_heavy() -> None:
    code = f"""
import sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("likeness", {str(FILE)!r})
module = sys.modules["likeness"] = module_from_spec(spec)
spec.loader.exec_module(module)
module.open_judge()
print(sorted({{"torch", "transformers", "sentence_transformers", "numpy"}} & set(sys.modules)))
"""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=FILE.parents[1],
    )
    assert ran.stdout.strip() == "[]"


def test_the_pairs_cover_every_kind_and_mode_on_both_sides() -> None:
    pairs = read_pairs(FILE.with_name("likeness.pairs.jsonl"))
    assert len(pairs) >= 150
    assert len({(pair.instruction, pair.answer) for pair in pairs}) == len(pairs)
    counts = Counter(f"{pair.split} {pair.kind} {pair.mode}" for pair in pairs)
    for split in ("dev", "test"):
        for kind in ("good", *FAULTS):
            for mode in ("contextual", "standalone"):
                assert counts[f"{split} {kind} {mode}"] >= 8
    assert all(("\n\n" in pair.instruction) == (pair.mode == "contextual") for pair in pairs)


def test_the_stored_card_is_of_this_judge_and_these_pairs() -> None:
    card = load_card(FILE)
    assert card is not None
    assert stale(card, FILE) == ()


@pytest.mark.slow
async def test_measuring_again_gives_the_stored_card(likeness: ModuleType) -> None:
    stored = load_card(FILE)
    assert stored is not None
    card, _ = await measure(likeness.open_judge(), bare_rubric(), FILE, likeness.WEIGHTS)
    for fault in FAULTS:
        for now, then in ((card.test, stored.test), (card.all, stored.all)):
            # Kernels of other machines move a cosine in its last digits and may swap a close pair.
            assert now.against[fault].auc == pytest.approx(then.against[fault].auc, abs=0.005)
            assert now.against[fault].accepted == pytest.approx(
                then.against[fault].accepted, abs=0.03
            )
    assert card.test.against["truncated"].auc >= 0.95
    assert card.test.against["repetitive"].auc >= 0.95
