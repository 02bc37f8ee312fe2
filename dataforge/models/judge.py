"""Judges: a rubric put to something that can judge, giving a verdict.

`Rubric` is the question, loaded from `judges/*.toml`; `Judge` is what a judge node sees. A chat
model judges by `ModelJudge` (prompt, schema, strict parse); a judge in code (`judges/*.py`)
implements `Judge` itself. What judging costs and how well it agrees with labels is measured in
`evals/agreement.py`, not assumed here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from dataforge.errors import DeclarationError
from dataforge.models.base import Message, Model
from dataforge.models.text import reply_json
from dataforge.verifiers.verdict import Verdict

__all__ = ["Case", "Judge", "ModelJudge", "Rubric"]

_HEAD = 500
"""Characters of an unreadable reply that are kept as evidence."""

_CLOSING = re.compile(r"</\s*([\w-]+)\s*>")

_FORM = (
    'Reply with one JSON object and nothing else: {"reasoning": your reasons, '
    '"marks": {each criterion: its mark}, "feedback": what to change, '
    '"verdict": "pass" or "fail"}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is judged: an answer to an instruction."""

    instruction: str
    answer: str
    truncated: bool = False
    """The answer was cut at its token limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """What to judge by.

    Raises DeclarationError for a template that names something unknown.
    """

    name: str
    criteria: Mapping[str, str]
    """Criterion -> what a high mark means."""
    system: str
    prompt: str
    """Template over `{instruction}`, `{answer}`, `{criteria}`, `{scale}`; so is `system`.

    A tag that either closes, such as `</answer>`, cannot be closed by what is judged.
    """
    pass_mark: float = 0.6
    """Least mean score in [0, 1] that passes."""
    floor: float = 0.4
    """Least score of any one criterion that passes."""
    scale: int = 5
    """Marks run from 1 to this."""
    max_tokens: int = 800

    def __post_init__(self) -> None:
        # Found where the rubric is written, and not at the end of the first walk that was paid for.
        for template in (self.system, self.prompt):
            _filled(template, Case(instruction="", answer=""), self)


class Judge(Protocol):
    """Anything that can judge a case by a rubric, bound to a role by the run."""

    __dataforge_role__: ClassVar[str] = "judge"

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        """The verdict on one case; never raises for a reply it cannot read: that is `undecided`."""
        ...


class ModelJudge:
    """A chat model as a judge: marks each criterion, then decides.

    Passes only what the model itself passes and its marks carry: a mean of at least the rubric's
    `pass_mark` and nothing under its `floor`. A mark m of 1 … `scale` scores (m - 1) / (scale - 1).
    """

    __dataforge_role__: ClassVar[str] = "judge"

    def __init__(self, model: Model, *, temperature: float = 0.0) -> None:
        """`temperature` is >= 0; above 0 a judge asked again need not stumble the same way."""
        self._model = model
        self._temperature = temperature

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        """The verdict on one case; `undecided` for a reply that is not what was asked for.

        Raises whatever ModelError the model raises.
        """
        messages = [Message("user", _filled(rubric.prompt, case, rubric) + _note(case))]
        if rubric.system:
            messages.insert(0, Message("system", _filled(rubric.system, case, rubric)))
        reply = await self._model.chat(
            messages,
            temperature=self._temperature,
            max_tokens=rubric.max_tokens,
            schema=_schema(rubric),
        )
        name = _verifier(rubric)
        try:
            if reply.finish == "length":
                raise _UnreadableError(f"the reply was cut at {rubric.max_tokens} tokens")
            if reply.finish == "refused":
                raise _UnreadableError(f"the reply was withheld: {reply.refusal[:_HEAD]}")
            marked = _read(reply.text, rubric)
        except _UnreadableError as error:
            evidence = {"unreadable": str(error), "reply": reply.text[:_HEAD]}
            return Verdict("undecided", evidence=evidence, verifier=name)
        return _conclude(marked, rubric, name)


class _Marked(BaseModel):
    """What a judging model is asked to reply, in this order: reasons come before marks."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    reasoning: str
    marks: dict[str, int]
    feedback: str
    verdict: Literal["pass", "fail"]


class _UnreadableError(ValueError):
    """A reply that is not what was asked for; the message says how."""


def _schema(rubric: Rubric) -> dict[str, object]:
    mark = {"type": "integer", "minimum": 1, "maximum": rubric.scale}
    return _closed(
        {
            "reasoning": {"type": "string"},
            "marks": _closed(dict.fromkeys(rubric.criteria, mark)),
            "feedback": {"type": "string"},
            "verdict": {"type": "string", "enum": ["pass", "fail"]},
        }
    )


def _closed(properties: dict[str, object]) -> dict[str, object]:
    """An object schema with all of `properties` and nothing else."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _filled(template: str, case: Case, rubric: Rubric) -> str:
    criteria = "\n".join(f"- {name}: {high}" for name, high in rubric.criteria.items())
    try:
        return template.format(
            instruction=_quoted(case.instruction, rubric),
            answer=_quoted(case.answer, rubric),
            criteria=criteria,
            scale=rubric.scale,
        )
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise DeclarationError(
            f"rubric {rubric.name!r}: its template cannot be filled ({error}); it may use "
            "{instruction}, {answer}, {criteria} and {scale}, and {{ }} for braces"
        ) from None


def _quoted(text: str, rubric: Rubric) -> str:
    """What is judged, unable to close or open the tags that the rubric puts around it."""
    tags = {*_CLOSING.findall(rubric.system), *_CLOSING.findall(rubric.prompt)}
    if not tags:
        return text
    names = "|".join(map(re.escape, sorted(tags)))
    return re.sub(rf"<(?=\s*/?\s*(?:{names})\b)", r"<\\", text, flags=re.IGNORECASE)


def _note(case: Case) -> str:
    """What the model cannot see, and how to reply where no schema holds it to that."""
    cut = "\n\nThe answer was cut off at its length limit." if case.truncated else ""
    return f"{cut}\n\n{_FORM}"


def _read(text: str, rubric: Rubric) -> _Marked:
    """The reply, parsed; raises _UnreadableError unless it is exactly what was asked for."""
    try:
        marked = _Marked.model_validate(reply_json(text))
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(str(part) for part in first["loc"]) or "the reply"
        raise _UnreadableError(f"{at}: {first['msg']}") from None
    except ValueError as error:
        raise _UnreadableError(f"not JSON: {error}") from None
    if marked.marks.keys() != rubric.criteria.keys():
        raise _UnreadableError(
            f"marks for {', '.join(sorted(marked.marks)) or 'nothing'} instead of "
            f"{', '.join(sorted(rubric.criteria))}"
        )
    for name, mark in marked.marks.items():
        if not 1 <= mark <= rubric.scale:
            raise _UnreadableError(f"marks.{name}: {mark} is not in 1 … {rubric.scale}")
    return marked


def _conclude(marked: _Marked, rubric: Rubric, verifier: str) -> Verdict:
    top = rubric.scale - 1
    scores = {name: (marked.marks[name] - 1) / top for name in rubric.criteria}
    # One division, so that a mean equal to the pass mark is not lost to rounding.
    mean = sum(mark - 1 for mark in marked.marks.values()) / (top * len(scores))
    weak = [name for name, score in scores.items() if score < rubric.floor]
    passed = marked.verdict == "pass" and mean >= rubric.pass_mark and not weak
    feedback = marked.feedback.strip()
    if not passed and (marked.verdict == "pass" or not feedback):
        # Feedback to an answer it liked would not say what the marks say.
        worst = weak or [min(scores, key=scores.__getitem__)]
        wants = (f"Improve its {name}: {rubric.criteria[name]}" for name in worst)
        feedback = " ".join(filter(None, (feedback, *wants)))
    return Verdict(
        "pass" if passed else "fail",
        score=mean,
        scores=scores,
        feedback=feedback,
        evidence={
            "marks": dict(marked.marks),
            "scale": rubric.scale,
            "verdict": marked.verdict,
            "reasoning": marked.reasoning,
        },
        verifier=verifier,
    )


def _verifier(rubric: Rubric) -> str:
    """The rubric by name and by what it asks."""
    asked = repr((*rubric.criteria.items(), rubric.system, rubric.prompt, rubric.scale, _FORM))
    return f"rubric {rubric.name} {blake2b(asked.encode(), digest_size=6).hexdigest()}"
