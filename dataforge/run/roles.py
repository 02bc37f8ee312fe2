"""A graph's roles, bound for one attempt of one step of one walk.

Here a node's question becomes a finished request: its seed is drawn, the journal is asked first,
and the reply is on disk before the node sees it. A judge's verdict is kept with the attempt it
belongs to. What a failure costs is the lane's business.

A question is named by its content and by how often the attempt has asked it, never by when, so a
node may ask several chains of questions at once. The price is that the calls of an attempt are
listed in no telling order, and that two chains which ask the very same must not care which of the
two replies is whose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import ClassVar, cast

from dataforge.errors import RunError, TransientModelError, UsageError
from dataforge.models.base import Message, Model, Params, Reply, Transport
from dataforge.models.judge import Case, Judge, ModelJudge, Rubric
from dataforge.models.text import clean, clean_json
from dataforge.run.events import CallEnded, Watch
from dataforge.run.halt import Halt
from dataforge.run.journal import ChatEntry, Entry, Journal, VerdictEntry, asked_hash, call_key
from dataforge.run.lane import TRIES, Lane
from dataforge.run.sampling import Draws
from dataforge.run.trace import Attempt
from dataforge.verifiers.verdict import Verdict

__all__ = ["Asking", "OpenJudge", "OpenModel", "Role", "Served", "bind", "check_roles"]

_JUDGE_PAUSE = 0.5
_HEAT = 0.5
"""Temperature of a chat model that judges again, since a cold one may stumble the same way."""


@dataclass(frozen=True, slots=True)
class Served:
    """One way to reach a model."""

    transport: Transport
    spec: str = ""
    """As the user named it; empty for one that was made in code."""
    address: str = ""
    """Those with the same address share its limit; empty shares it with nobody."""
    share: float = 1.0
    """Of the calls, beside the others of its model; > 0."""


@dataclass(frozen=True, slots=True)
class OpenModel:
    """A role played by a chat model."""

    spec: str
    """As the user named it."""
    weights: str
    """Identity of the weights."""
    served: tuple[Served, ...]
    """All over the same weights; none where the model is not to be asked in this process."""
    workers: Path | None = None
    """A file that lists who serves it from now on."""

    @classmethod
    def of(cls, spec: str, transport: Transport) -> OpenModel:
        """A model with one transport."""
        return cls(spec, transport.weights, (Served(transport, spec),))


@dataclass(frozen=True, slots=True)
class OpenJudge:
    """A judge role played by code."""

    spec: str
    judge: Judge
    weights: str
    """Identity of the weights it judges with, if any."""
    digest: str
    """Hash of its source, so that a changed judge judges again."""


Role = OpenModel | OpenJudge
"""Who plays a role."""


@dataclass(slots=True)
class Asking:
    """One attempt, as its roles see it."""

    walk_id: str
    draws: Draws
    journal: Journal
    halt: Halt
    watch: Watch
    attempt: Attempt
    left: int = 0
    """Steps the walk has before it, this one among them."""
    times: Counter[str] = field(default_factory=Counter)
    """Hash of what was asked -> how often so far."""

    def name(self, weights: str, asked: Mapping[str, object]) -> str:
        """What tells this call from the others of its attempt; once a call, before any waiting."""
        content = asked_hash(weights, asked)
        self.times[content] += 1
        return f"{content}#{self.times[content] - 1}"

    def key(self, name: str) -> str:
        """The journal's key of the call of this name."""
        return call_key(name, self.walk_id, self.attempt.step, self.attempt.number)

    def seed(self, name: str) -> int:
        """The call's seed."""
        return self.draws.below(2**31, "call", self.attempt.step, self.attempt.number, name)

    def jitter(self, name: str) -> Callable[[int], float]:
        """Spreads the waits of one call; drawn, so that no run depends on a clock's seed."""
        step, number = self.attempt.step, self.attempt.number
        return lambda n: self.draws.unit("wait", step, number, name, n)

    async def keep(self, entry: Entry) -> None:
        """Has a finished call on disk; a disk that refuses stops the run."""
        try:
            self.attempt.calls[entry.name] = await self.journal.add(entry)
        except RunError as error:
            self.halt.stop(error)
            raise


class _BoundModel:
    """`Model` for one attempt."""

    __dataforge_role__: ClassVar[str] = "model"

    def __init__(self, role: str, lane: Lane, asking: Asking) -> None:
        self._role = role
        self._lane = lane
        self._asking = asking

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        temperature: float = 0.7,
        top_p: float = 1.0,
        max_tokens: int = 512,
        schema: Mapping[str, object] | None = None,
        n: int = 1,
        tools: Sequence[Mapping[str, object]] = (),
        logprobs: int | None = None,
    ) -> Reply:
        asking, attempt = self._asking, self._asking.attempt
        messages = tuple(each.cleaned() for each in messages)
        params = Params(
            temperature=temperature,
            top_p=top_p,
            max_tokens=max_tokens,
            schema=schema,
            n=n,
            tools=tuple(tools),
            logprobs=logprobs,
        ).cleaned()
        weights = self._lane.weights
        asked = {"messages": [each.told() for each in messages], "params": params.told()}
        name = asking.name(weights, asked)
        params = replace(params, seed=asking.seed(name))
        key = asking.key(name)
        found = asking.journal.find(key)
        if found is not None and isinstance(entry := found[1], ChatEntry):
            attempt.calls[name] = found[0]
            reply, seconds = entry.reply, 0.0
        else:
            with asking.journal.under_way():
                reply, seconds = await self._lane.complete(
                    messages, params, asking.jitter(name), asking.left
                )
                reply = reply.cleaned()
                await asking.keep(
                    # Every value is of its type already; checking them again costs 10 microseconds.
                    ChatEntry.model_construct(
                        kind="chat",
                        key=key,
                        walk_id=asking.walk_id,
                        step=attempt.step,
                        attempt=attempt.number,
                        name=name,
                        node=attempt.node,
                        role=self._role,
                        weights=weights,
                        seconds=seconds,
                        at=_now(),
                        messages=messages,
                        params=params,
                        reply=reply,
                    )
                )
        ended = (asking.walk_id, self._role, attempt.node, reply, seconds, found is not None)
        asking.watch(CallEnded(*ended))
        return reply


class _BoundJudge:
    """`Judge` for one attempt: keeps the verdicts, and asks again where judging itself failed."""

    __dataforge_role__: ClassVar[str] = "judge"

    def __init__(self, role: str, judge: Judge, by: str, asking: Asking) -> None:
        self._role = role
        self._judge = judge
        self._by = by
        self._asking = asking

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        case = replace(case, instruction=clean(case.instruction), answer=clean(case.answer))
        name = self._asking.name(self._by, {"case": asdict(case), "rubric": asdict(rubric)})
        verdict = await self._conclude(case, rubric, name)
        self._asking.attempt.verdicts[name] = verdict
        return verdict

    async def _conclude(self, case: Case, rubric: Rubric, name: str) -> Verdict:
        jitter = self._asking.jitter(name)
        for tries in range(1, TRIES + 1):
            self._asking.halt.check()
            verdict = await self._judge.judge(case, rubric)
            if verdict.status != "error":
                return _written(verdict)
            if tries < TRIES:
                await self._asking.halt.pause(_JUDGE_PAUSE * 2.0**tries * (0.5 + jitter(tries) / 2))
        raise TransientModelError(
            f"{self._role}: no verdict by {rubric.name} after {TRIES} tries: "
            f"{verdict.feedback or verdict.evidence or 'the judge gave no cause'}"
        )


class _BoundCodeJudge(_BoundJudge):
    """The same for a judge in code, whose verdicts are journalled: it may be slow, or change."""

    def __init__(self, role: str, player: OpenJudge, asking: Asking) -> None:
        super().__init__(role, player.judge, f"{player.weights} {player.digest}", asking)
        self._weights = player.weights

    async def _conclude(self, case: Case, rubric: Rubric, name: str) -> Verdict:
        asking, attempt = self._asking, self._asking.attempt
        key = asking.key(name)
        found = asking.journal.find(key)
        if found is not None and isinstance(entry := found[1], VerdictEntry):
            attempt.calls[name] = found[0]
            return entry.verdict
        with asking.journal.under_way():
            began = monotonic()
            verdict = await super()._conclude(case, rubric, name)
            await asking.keep(
                VerdictEntry(
                    key=key,
                    walk_id=asking.walk_id,
                    step=attempt.step,
                    attempt=attempt.number,
                    name=name,
                    node=attempt.node,
                    role=self._role,
                    weights=self._weights,
                    seconds=monotonic() - began,
                    at=_now(),
                    rubric=rubric.name,
                    case=case,
                    verdict=verdict,
                )
            )
        return verdict


def bind(role: str, kind: str, player: Role, lanes: Mapping[str, Lane], asking: Asking) -> object:
    """What a node is handed for `role`: a `Model` or a `Judge` bound to this attempt."""
    if isinstance(player, OpenJudge):
        return _BoundCodeJudge(role, player, asking)
    model: Model = _BoundModel(role, lanes[role], asking)
    if kind != "judge":
        return model
    judge = ModelJudge(model, temperature=_HEAT if asking.attempt.number > 1 else 0.0)
    return _BoundJudge(role, judge, player.weights, asking)


def check_roles(wanted: Mapping[str, str], players: Mapping[str, Role]) -> None:
    """Raises UsageError unless every role of a graph (name -> kind) has a player that can play."""
    for role, kind in sorted(wanted.items()):
        player = players.get(role)
        if player is None:
            raise UsageError(f"the graph asks for a {kind} {role!r}: give it --model {role}=SPEC")
        if kind == "model" and isinstance(player, OpenJudge):
            raise UsageError(
                f"{role!r} writes text, and {player.spec!r} can only judge: "
                f"give it a chat model, as in --model {role}=embedded"
            )


def _written(verdict: Verdict) -> Verdict:
    """The verdict as a file can hold it."""
    return replace(
        verdict,
        feedback=clean(verdict.feedback),
        evidence=cast("Mapping[str, object]", clean_json(verdict.evidence)),
        scores={clean(name): score for name, score in verdict.scores.items()},
        verifier=clean(verdict.verifier),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
