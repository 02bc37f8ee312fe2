"""One walk told again from a run's logs: its seed, its path, every call and every verdict.

Reads without the lock, so a run can be looked at while it goes on; a walk is found once it ended.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dataforge.errors import InputError
from dataforge.models.base import Finish
from dataforge.run.finish import ended_walks
from dataforge.run.journal import ChatEntry, Entry
from dataforge.run.logs import Logs
from dataforge.run.manifest import load_manifest
from dataforge.run.trace import Attempt, WalkEnd
from dataforge.verifiers.verdict import Verdict

__all__ = ["Story", "find_walk", "stories", "tell", "tell_data"]

_SHORT = 700
_TAIL = 200
_WIDTH = 100
_SOME = 8
_ENDED: Mapping[Finish, str] = {
    "stop": "",
    "length": ", cut at its limit",
    "refused": ", withheld",
    "tools": ", waiting for its tool calls",
}


@dataclass(frozen=True, slots=True)
class Story:
    """A walk and the calls it made."""

    walk: WalkEnd
    calls: Mapping[int, Entry]
    """Where a call stands in the journal -> the call."""
    specs: Mapping[str, str]
    """Role -> the model that plays it, as the user named it."""


def find_walk(folder: Path, name: str) -> Story:
    """The ended walk whose id begins with `name`, or that made the call or had the seed of that id.

    InputError when there is none, or more than one.
    """
    manifest = load_manifest(folder)
    ended = ended_walks(folder, manifest.fingerprint)
    walk_of_call, dash, number = name.rpartition("-")
    if dash and number.isdigit() and ended.get(walk_of_call):
        name = walk_of_call
    found = ended.named(name)
    if not found:
        raise InputError(
            f"{folder}: no walk that has ended has an id that begins with {name!r}, nor a seed of "
            f"that id; `dataforge show --run {folder}` lists some"
        )
    if len(found) > 1:
        some = ", ".join(found[:_SOME]) + (", …" if len(found) > _SOME else "")
        raise InputError(f"{name!r} means {len(found)} walks: {some}. Give one of these ids")
    return next(stories(folder, found))


def stories(folder: Path, ids: Iterable[str]) -> Iterator[Story]:
    """The walks of these ids that have ended, in their order."""
    manifest = load_manifest(folder)
    ended = ended_walks(folder, manifest.fingerprint)
    specs = {role: mark.spec for role, mark in manifest.roles.items()}
    with Logs(folder) as logs:
        for end in filter(None, map(ended.get, ids)):
            walk = logs.walk(end.part, end.offset)
            offsets = [offset for attempt in walk.attempts for offset in attempt.calls.values()]
            calls = {offset: logs.call(end.part, offset) for offset in offsets}
            yield Story(walk, calls, specs)


def tell_data(story: Story) -> dict[str, object]:
    """The story as JSON values."""
    walk = story.walk.model_dump(mode="json")
    calls = {str(at): entry.model_dump(mode="json") for at, entry in story.calls.items()}
    return {**walk, "path": list(story.walk.path), "journal": calls}


def tell(story: Story, full: bool) -> str:
    """The story as text; long texts are cut unless `full`."""
    return "\n".join(_lines(story, full))


def _lines(story: Story, full: bool) -> Iterator[str]:
    walk = story.walk
    score = "" if walk.score is None else f", score {walk.score:.2f}"
    yield f"walk     {walk.id}: {walk.outcome}{score}"
    if walk.outcome != "accepted":
        yield from _wrapped("ended", f"{walk.node}: {walk.reason}")
        yield from _wrapped("", walk.detail)
    yield f"seed     {walk.seed_id}, walk {walk.walk} of it"
    yield from _wrapped("path", " -> ".join(walk.path))
    if walk.facts:
        yield from _wrapped("facts", ", ".join(f"{k} {v}" for k, v in walk.facts.items()))
    yield from _text("passage", walk.passage, full)
    for number, attempt in enumerate(walk.attempts, start=1):
        yield ""
        yield _heading(number, attempt)
        for offset in sorted(attempt.calls.values()):
            entry = story.calls[offset]
            if isinstance(entry, ChatEntry):
                yield f"  {entry.role} = {story.specs.get(entry.role, entry.weights)}"
                yield from _call(entry, full)
        for _, verdict in sorted(attempt.verdicts.items()):
            yield from _verdict(verdict, full)
        if attempt.unmet:
            yield from _wrapped("  unmet", attempt.unmet)
    for said in walk.messages:
        yield ""
        yield f"sample: {said.role}"
        yield from _text("", said.content, full)


def _heading(number: int, attempt: Attempt) -> str:
    again = "" if attempt.number == 1 else f", attempt {attempt.number}"
    rounds = int(attempt.step.rpartition("#")[2])
    nth = "" if rounds == 0 else f", time {rounds + 1}"
    lost = "  (superseded)" if attempt.superseded else ""
    return f"{number}. {attempt.node}{nth}{again}{lost}"


def _call(entry: ChatEntry, full: bool) -> Iterator[str]:
    params, reply = entry.params, entry.reply
    yield (
        f"  temperature {params.temperature:g}, top_p {params.top_p:g}, "
        f"at most {params.max_tokens} tokens, seed {params.seed}"
    )
    for message in entry.messages:
        yield from _text(f"  {message.role}", message.content, full)
    yield from _text("  reasoning", reply.reasoning, full)
    yield from _text("  reply", reply.text, full)
    yield from _text("  withheld", reply.refusal, full)
    for called in reply.tool_calls:
        yield from _text("  tool call", f"{called.name} {called.arguments}", full)
    for other in reply.others:
        yield from _text("  other reply", other, full)
    yield (
        f"  {reply.tokens_in} tokens in, {reply.tokens_out} out{_ENDED[reply.finish]}, "
        f"{entry.seconds:.2f} s, {entry.at}"
    )


def _verdict(verdict: Verdict, full: bool) -> Iterator[str]:
    score = "" if verdict.score is None else f" {verdict.score:.2f}"
    by = f" by {verdict.verifier}" if verdict.verifier else ""
    yield f"  verdict: {verdict.status}{score}{by}"
    told = ", ".join(
        f"{name} {'cannot tell' if score is None else f'{score:.2f}'}"
        for name, score in verdict.scores.items()
    )
    yield from _wrapped("    scores", told)
    yield from _text("    feedback", verdict.feedback, full)


def _wrapped(label: str, text: str) -> Iterator[str]:
    if text:
        yield textwrap.fill(text, _WIDTH, initial_indent=f"{label:8} ", subsequent_indent=" " * 9)


def _text(label: str, text: str, full: bool) -> Iterator[str]:
    """A text under its label, each line indented; cut in the middle if long and not `full`."""
    if not text:
        return
    if label:
        yield f"{label}:"
    if not full and len(text) > _SHORT:
        left_out = len(text) - _SHORT
        text = (
            f"{text[: _SHORT - 200]} […{left_out:,} characters, --full shows them…] {text[-200:]}"
        )
    indent = " " * (len(label) - len(label.lstrip()) + 4)
    for line in text.splitlines():
        yield textwrap.fill(
            line, _WIDTH, initial_indent=indent, subsequent_indent=indent, replace_whitespace=False
        )
