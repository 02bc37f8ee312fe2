"""Rubrics become judge nodes; judges in code are opened by name."""

from __future__ import annotations

from typing import ClassVar

import pytest

from dataforge.errors import DeclarationError, LibraryError, Unmet
from dataforge.library.judges import load_code_judge, load_judges
from dataforge.models.judge import Case, Rubric
from dataforge.verifiers.verdict import Verdict
from tests.library.scene import Write

RUBRICS = """
[shared]
judges = "answer"
scale = 4
prompt = "{instruction}: {answer} by {criteria} up to {scale}"

[grounded]
preconditions.task = ["summarize", "extract"]
criteria.relevance = "It answers."

[creative]
role = "critic"
pass_mark = 0.5
preconditions.task = "role_play"
criteria.style = "It sings."
"""
CODE = """
from dataforge.models.judge import Case, Rubric
from dataforge.verifiers.verdict import Verdict

WEIGHTS = "rules"

class Short:
    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        return Verdict("pass", 1.0)

def open_judge() -> Short:
    return Short()
"""


class Fixed:
    """A judge that always concludes the same."""

    __dataforge_role__: ClassVar[str] = "judge"

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.seen: list[tuple[Case, Rubric]] = []

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        """The verdict it was made with."""
        self.seen.append((case, rubric))
        return self.verdict


async def test_a_rubric_is_a_judge_node_put_to_what_its_preconditions_say(write: Write) -> None:
    nodes = load_judges(write({"judges/answer.toml": RUBRICS}))
    assert list(nodes) == ["judge/answer/creative", "judge/answer/grounded"]
    node = nodes["judge/answer/grounded"]
    assert (node.judges, node.roles, node.attempts) == ("answer", {"judge": "judge"}, 2)
    assert nodes["judge/answer/creative"].roles == {"critic": "judge"}
    judge = Fixed(Verdict("fail", 0.25, feedback="say more"))
    taken = node.takes.model_validate(
        {"instruction": "Sum up.", "answer": "So.", "task": "extract", "truncated": True}
    )
    made = await node(taken, judge=judge)
    assert dict(made) == {"verdict": "fail", "score": 0.25, "feedback": "say more"}
    case, rubric = judge.seen[0]
    assert case == Case(instruction="Sum up.", answer="So.", truncated=True)
    assert (rubric.name, rubric.scale, rubric.pass_mark) == ("answer/grounded", 4, 0.6)
    assert rubric.criteria == {"relevance": "It answers."}


async def test_a_graph_may_set_the_marks_that_pass(write: Write) -> None:
    node = load_judges(write({"judges/answer.toml": RUBRICS}))["judge/answer/creative"]
    judge = Fixed(Verdict("pass", 1.0))
    taken = node.takes.model_validate({"instruction": "x", "answer": "y", "task": "role_play"})
    await node.with_settings(pass_mark=0.9)(taken, critic=judge)
    assert (judge.seen[0][1].pass_mark, judge.seen[0][1].floor) == (0.9, 0.4)
    with pytest.raises(DeclarationError, match="setting 'pass_mark' is 5"):
        node.with_settings(pass_mark=5)


async def test_an_undecided_verdict_has_no_score_and_passes_nothing(write: Write) -> None:
    node = load_judges(write({"judges/answer.toml": RUBRICS}))["judge/answer/creative"]
    taken = node.takes.model_validate({"instruction": "x", "answer": "y", "task": "role_play"})
    made = await node(taken, critic=Fixed(Verdict("undecided", feedback="?")))
    assert dict(made) == {"verdict": "undecided", "score": None, "feedback": "?"}


async def test_a_judge_that_broke_down_is_unmet_and_never_a_verdict(write: Write) -> None:
    node = load_judges(write({"judges/answer.toml": RUBRICS}))["judge/answer/creative"]
    taken = node.takes.model_validate({"instruction": "x", "answer": "y", "task": "role_play"})
    with pytest.raises(Unmet, match="the judge failed: no model"):
        await node(taken, critic=Fixed(Verdict("error", feedback="no model")))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("scale = 4", "scales = 4", "[shared] scales: there is no such key of a rubric; did you"),
        ("{answer}", "{answr}", "[shared] prompt: {answr} is nothing a rubric knows; did you mean"),
        ('judges = "answer"', "", "[grounded]: 'judges' is missing"),
        ('criteria.style = "It sings."', "", "[creative]: 'criteria' is missing"),
        (
            'criteria.style = "It sings."',
            "criteria = {}",
            "[creative] criteria: needs at least one",
        ),
        (
            "pass_mark = 0.5",
            "pass_mark = 5",
            "[creative] pass_mark: must be at least 0 and at most",
        ),
        ("[shared]", "scale = 3\n[shared]", "scale: stands outside any table"),
    ],
)
def test_a_faulty_rubric_is_refused_by_file_table_and_key(
    write: Write, old: str, new: str, said: str
) -> None:
    with pytest.raises(LibraryError) as caught:
        load_judges(write({"judges/answer.toml": RUBRICS.replace(old, new)}))
    assert str(caught.value).startswith(f"judges/answer.toml {said}")


def test_a_changed_rubric_is_another_node(write: Write) -> None:
    before = load_judges(write({"judges/a.toml": RUBRICS}))["judge/a/grounded"].digest
    after = load_judges(write({"judges/a.toml": RUBRICS.replace("scale = 4", "scale = 5")}))
    assert after["judge/a/grounded"].digest != before


async def test_a_judge_in_code_is_opened_by_name(write: Write) -> None:
    library = write({"judges/short.py": CODE})
    opened = load_code_judge("short", library)
    assert opened.weights == "rules"
    rubric = Rubric(name="r", criteria={}, system="", prompt="")
    verdict = await opened.judge.judge(Case(instruction="x", answer="y"), rubric)
    assert verdict.status == "pass"
    write({"judges/short.py": CODE + "# changed\n"})
    assert load_code_judge("short", library).digest != opened.digest


def test_a_judge_that_is_none_is_refused(write: Write) -> None:
    library = write({"judges/short.py": CODE.replace("WEIGHTS", "WEIGHT")})
    with pytest.raises(
        LibraryError, match=r"^judges/short\.py: is no judge; it needs `def open_ju"
    ):
        load_code_judge("short", library)
    with pytest.raises(LibraryError) as caught:
        load_code_judge("shrt", library)
    assert "there is no judges/shrt in mine (.); did you mean 'short'? There are: short" in str(
        caught.value
    )
