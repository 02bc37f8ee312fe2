"""What a run would ask, without asking: each walk's prompts, over stand-ins for what replies give.

Routes are drawn as a run draws them, and nodes are run, each with a model that notes what it is
asked and says a stand-in. What then cannot be kept (a length, a form) is filled in by stand-ins, so
the walk goes on to its end. A prompt that hangs on the seed alone is the one a run sends, byte for
byte; in others the stand-ins show where replies go. No seed of a call, no retry and no reply is
rehearsed, and where a promise leaves a choice, one of the values stands for all. Code in nodes
does run: what it reaches for by itself, it reaches for here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

from dataforge.errors import DataForgeError, ModelError, Unmet
from dataforge.models.base import Message, Params, Reply
from dataforge.models.judge import Case, ModelJudge, Rubric
from dataforge.models.text import clean
from dataforge.plan.graph import Graph
from dataforge.plan.loop import CRITIQUE, Loop
from dataforge.plan.node import Node
from dataforge.plan.route import Route, Step
from dataforge.plan.shape import Shape
from dataforge.plan.struct import Struct, breach, facts, fill, view
from dataforge.run.policy import Policy, policy
from dataforge.run.sampling import Draws
from dataforge.run.schedule import Plan, walk_id
from dataforge.run.seed import SeedStore
from dataforge.run.stand_in import by_schema, quoted, stand_in
from dataforge.run.state import Record, Rejected, after, entry
from dataforge.verifiers.verdict import Verdict

__all__ = ["Asked", "DryWalk", "Writes", "dry_walks"]

_MOST_CALLS = 50
"""Calls of one node after which it is taken to wait for a reply that no stand-in is."""


@runtime_checkable
class Writes(Protocol):
    """What runs a node, where it can say what it would make of a reply."""

    def written(self, seen: Struct, reply: str, **given: object) -> Mapping[str, object]:
        """The fields it would write, unchecked."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """One call that a walk would make."""

    node: str
    role: str
    messages: tuple[Message, ...]
    params: Params
    again: bool = False
    """It is a loop's second round that asks so, with the critique of the first."""


@dataclass(slots=True)
class DryWalk:
    """One walk, as far as it can be told beforehand."""

    id: str
    seed_id: str
    walk: int
    """Which walk of its seed, from 0."""
    path: list[str] = field(default_factory=list)
    """The nodes it runs, those inside loops and nested graphs in their place."""
    asked: list[Asked] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Nodes that failed on stand-ins otherwise than by a promise, and how."""
    ended: str = ""
    """Why it ends before the target, whatever models reply; empty where it does not."""
    sample: tuple[Message, ...] = ()
    """The conversation it would leave."""


async def dry_walks(
    graph: Graph,
    seeds: SeedStore,
    walks: int,
    *,
    run_seed: int,
    rule: Policy,
    coded: frozenset[str],
) -> list[DryWalk]:
    """The first `walks` walks that a run of these begins.

    `coded`: judge roles that code plays, which nothing is asked of. Raises what a node or rubric
    that cannot be raises, such as `DeclarationError`.
    """
    routes = policy(rule, graph)
    found: list[DryWalk] = []
    for place, planned in enumerate(Plan(seeds.ids(), walks, run_seed)):
        seed, twin = seeds[planned.seed], seeds.twin(planned.seed)
        name = walk_id(graph.name, run_seed, seed.id, planned.walk)
        told = DryWalk(name, clean(seed.id), planned.walk)
        found.append(told)
        route = routes(Draws(run_seed, seed.id, planned.walk), place)
        if twin is not None:
            told.ended = f"seeds: same passage as seed {twin}"
            continue
        given = {key: clean(value) for key, value in seed.meta.items()}
        record = entry(graph.preconditions, given | {"passage": clean(seed.passage)})
        try:
            last, _ = await _Walker(told, coded).follow(route, record, frozenset())
        except Rejected as error:
            told.ended = str(error)
        else:
            told.sample = tuple(_turns(last.get("messages")))
    return found


@dataclass(frozen=True, slots=True)
class _Walker:
    """Takes one walk's steps, and tells what it would ask."""

    told: DryWalk
    coded: frozenset[str]

    async def follow(
        self, route: Route, record: Record, stood: frozenset[str]
    ) -> tuple[Record, frozenset[str]]:
        """The record at a route's end, and which of its fields are stand-ins."""
        for step in route:
            made, stands = await self._act(step, record, stood)
            written = step.action.postconditions
            record = after(written, record, made)
            stood = (stood - written.keys()) | (stands & written.keys())
        return record, stood

    async def _act(
        self, step: Step, record: Record, stood: frozenset[str]
    ) -> tuple[Record, frozenset[str]]:
        match step.action:
            case Node() as node:
                return await self._node(node, record, stood)
            case Loop() as loop:
                return await self._loop(loop, step.inside, record, stood)
            case Graph() as graph:
                fresh = entry(graph.preconditions, record)
                return await self.follow(step.inside, fresh, stood & fresh.keys())
        raise TypeError(f"{step.action.name}: a {type(step.action).__name__} cannot be run")

    async def _loop(
        self, loop: Loop, route: Route, record: Record, stood: frozenset[str]
    ) -> tuple[Record, frozenset[str]]:
        """One round that ends the loop; of a second one, what it would ask otherwise."""
        fresh = entry(loop.preconditions, record)
        kept = entry(loop.body.preconditions, fresh)
        begun = len(self.told.asked)
        made, stands = await self.follow(route, kept, stood & kept.keys())
        said = made.get(loop.critique) if loop.critique else None
        if said and loop.at_most > 1 and CRITIQUE in loop.body.preconditions:
            await self._again(route, {**kept, CRITIQUE: said}, stood, self.told.asked[begun:])
        ended = dict(made)
        for name, shape in loop.until.items():
            if breach({name: shape}, ended) is not None:
                ended.pop(name, None)
                promised = loop.postconditions.get(name) or shape
                if promised is not None:
                    ended[name] = stand_in(name, promised)
        return ended, stands | loop.until.keys()

    async def _again(
        self, route: Route, record: Record, stood: frozenset[str], first: Sequence[Asked]
    ) -> None:
        second = DryWalk(self.told.id, self.told.seed_id, self.told.walk)
        await _Walker(second, self.coded).follow(route, record, stood | {CRITIQUE})
        before = {(each.node, each.messages) for each in first}
        self.told.asked += [
            replace(each, again=True)
            for each in second.asked
            if (each.node, each.messages) not in before
        ]

    async def _node(
        self, node: Node[Struct, Struct], record: Record, stood: frozenset[str]
    ) -> tuple[Record, frozenset[str]]:
        self.told.path.append(node.name)
        real = not stood & node.takes.model_fields.keys()
        try:
            taken = fill(node.takes, record)
        except Unmet as error:
            if real:
                raise Rejected(node.name, error.reason, error.detail) from error
            seen: dict[str, Any] = {
                name: deepcopy(record.get(name)) for name in node.takes.model_fields
            }
            taken = node.takes.model_construct(**seen)
        voice = _Voice(node, self.told)
        made: Record | None = None
        try:
            made = await _made(node, taken, voice.roles(self.coded), checked=real)
        except _Enough:
            self.told.notes.append(f"{node.name}: asks on and on, as no reply suits it")
        except (Unmet, ModelError) as error:
            if real and not voice.spoken:
                detail = error.detail if isinstance(error, Unmet) else ""
                reason = error.reason if isinstance(error, Unmet) else str(error)
                raise Rejected(node.name, reason, detail) from error
        except DataForgeError:
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {view(str(error))}"
            if real and not voice.spoken:
                raise Rejected(node.name, type(error).__name__, str(error)) from error
            self.told.notes.append(f"{node.name}: failed on stand-ins ({said})")
        if real and not voice.spoken:
            assert made is not None
            return made, frozenset()
        return self._filled(node, taken, made, voice.word)

    def _filled(
        self, node: Node[Struct, Struct], taken: Struct, made: Record | None, word: str
    ) -> tuple[Record, frozenset[str]]:
        """What a node made, or stand-ins for it; which of its fields are only that."""
        promised = {name: shape for name, shape in node.postconditions.items() if shape is not None}
        open_fields = frozenset(name for name, shape in promised.items() if not _settled(shape))
        if made is not None:
            return made, open_fields
        given = {name: stand_in(name, shape) for name, shape in promised.items() if not shape.maybe}
        if isinstance(node.run, Writes):
            given |= node.run.written(taken, word, **node.settings)
        return given, open_fields


async def _made(
    node: Node[Struct, Struct], taken: Struct, roles: Mapping[str, object], *, checked: bool
) -> Record:
    """What a node makes; `Unmet` where it is not what it promised, if that is `checked`."""
    made = await node(taken, **roles)
    if not isinstance(made, node.makes):
        raise TypeError(f"returned {view(made)}, not {node.makes.__name__}")
    given = facts(made)
    unmet = breach(node.postconditions, given) if checked else None
    if unmet is not None:
        raise unmet
    return given


def _settled(shape: Shape) -> bool:
    return shape.values is not None and len(shape.values) == 1 and not shape.maybe


class _Enough(BaseException):
    """Ends a node that asks without end; no `Exception`, so that no node swallows it."""


class _Voice:
    """The roles of one node: they note what they are asked and give stand-ins."""

    def __init__(self, node: Node[Struct, Struct], told: DryWalk) -> None:
        self._node, self._told = node, told
        texts = (
            name
            for name, shape in node.postconditions.items()
            if shape is not None and shape.base is str and not _settled(shape)
        )
        self.word = quoted(next(texts, "reply"))
        """What a model says."""
        self.spoken = False
        """Whether any role was asked anything."""
        self._calls = 0

    def roles(self, coded: frozenset[str]) -> dict[str, object]:
        """Role -> what plays it here."""
        return {
            role: _Model(self, role)
            if kind == "model"
            else _Judge(self, None if role in coded else _Model(self, role))
            for role, kind in self._node.roles.items()
        }

    def hear(self, role: str, messages: Sequence[Message], params: Params) -> Reply:
        """Notes a call; gives the stand-in for its reply."""
        self.spoken = True
        self._calls += 1
        if self._calls > _MOST_CALLS:
            raise _Enough
        cleaned = tuple(replace(each, content=clean(each.content)) for each in messages)
        self._told.asked.append(Asked(self._node.name, role, cleaned, params))
        text = self.word if params.schema is None else by_schema(params.schema, self.word)
        return Reply(text=text, finish="stop", tokens_in=0, tokens_out=0)


@dataclass(frozen=True, slots=True)
class _Model:
    """A model that is none."""

    voice: _Voice
    role: str
    __dataforge_role__: ClassVar[str] = "model"

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
        """The stand-in for a reply."""
        params = Params(
            temperature=temperature,
            top_p=top_p,
            max_tokens=max_tokens,
            schema=schema,
            n=n,
            tools=tuple(tools),
            logprobs=logprobs,
        )
        return self.voice.hear(self.role, messages, params)


@dataclass(frozen=True, slots=True)
class _Judge:
    """A judge that passes everything; `model` is what it would ask, None where that is code."""

    voice: _Voice
    model: _Model | None
    __dataforge_role__: ClassVar[str] = "judge"

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        """A pass, with a stand-in for what would be said."""
        self.voice.spoken = True
        if self.model is not None:
            cleaned = replace(case, instruction=clean(case.instruction), answer=clean(case.answer))
            await ModelJudge(self.model).judge(cleaned, rubric)
        return Verdict("pass", 1.0, feedback=quoted("feedback"))


def _turns(messages: object) -> Iterator[Message]:
    """The turns of a sample, as far as they can be told."""
    for turn in messages if isinstance(messages, Sequence) else ():
        if isinstance(turn, Mapping) and {"role", "content"} <= turn.keys():
            yield Message(turn["role"], str(turn["content"]))
