"""One walk: from a seed to a sample, or to the node that could not keep its promise.

Preconditions are proved by the plan, so what is checked here is what nodes promise. A promise that
is not kept is tried again, then rejects the walk; a model that does not answer fails it, as does a
bug in a node; none of that stops the run. Steps of one walk never run at once.

Draws and calls are named by what is chosen and by how often a node has run, not by depth, so a
graph gives the same samples nested or flattened.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from dataforge.corpus.record import Fact, Turn
from dataforge.errors import (
    ContextOverflow,
    DataForgeError,
    FatalModelError,
    RequestRefused,
    RunError,
    TransientModelError,
    Unmet,
)
from dataforge.models.text import clean
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.loop import Loop
from dataforge.plan.node import Node
from dataforge.plan.route import Route, Step
from dataforge.plan.struct import Struct, breach, broken, facts, fill, view
from dataforge.run.events import Watch
from dataforge.run.halt import Halt
from dataforge.run.journal import Journal
from dataforge.run.lane import Lane
from dataforge.run.loop import run_loop
from dataforge.run.outcome import AGAIN
from dataforge.run.roles import Asking, Role, bind
from dataforge.run.sampling import Draws
from dataforge.run.state import Record, Rejected, after, entry
from dataforge.run.trace import Attempt, Outcome, WalkEnd

__all__ = ["Ground", "Walk"]

_ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What all walks of a run share."""

    graph: Graph
    fingerprint: str
    players: Mapping[str, Role]
    lanes: Mapping[str, Lane]
    journal: Journal
    halt: Halt
    watch: Watch


class Walk:
    """One walk, to be made once."""

    def __init__(
        self, ground: Ground, walk_id: str, draws: Draws, passage: str, route: Route
    ) -> None:
        self._ground = ground
        self._id = walk_id
        self._passage = passage
        self._draws = draws
        self._route = route
        self._attempts: list[Attempt] = []
        self._ran: Counter[str] = Counter()
        self._writers: dict[str, str] = {}
        self._literal: dict[str, bool] = {}
        self._at = ground.graph.name
        self._left = len(route)

    async def make(self, seed: Record) -> WalkEnd:
        """Walks from a seed's fields; how it ended. Raises only what is to stop the run."""
        try:
            record = await self.follow(self._route, seed)
            messages = _conversation(record, self._ground.graph.target)
        except Rejected as error:
            return self._ended("rejected", error.node, error.reason, error.detail)
        except (FatalModelError, RunError):
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Not this walk was cancelled but something a node waited for.
            return self._ended("failed", self._at, *_failure(error))
        except Exception as error:
            return self._ended("failed", self._at, *_failure(error))
        score = record.get("score")
        return self._ended("accepted").model_copy(
            update={
                "messages": messages,
                "facts": self._facts(record),
                "score": score if isinstance(score, float) else None,
            }
        )

    async def follow(self, route: Route, record: Record) -> Record:
        """Takes the steps of a route, from a graph's source to its target."""
        for place, step in enumerate(route):
            if route is self._route:
                self._left = len(route) - place
            record = after(step.action.postconditions, record, await self._act(step, record))
            if route is self._route:
                self._note(step.action)
        return record

    def writer(self, field: str) -> str:
        """The node that last wrote a field."""
        return self._writers.get(field, self._at)

    def supersede(self, begun: int) -> None:
        """Takes back the attempts made since there were `begun`."""
        for attempt in self._attempts[begun:]:
            attempt.superseded = True

    @property
    def attempted(self) -> int:
        """How many attempts at nodes the walk has made."""
        return len(self._attempts)

    async def _act(self, step: Step, record: Record) -> Record:
        match step.action:
            case Node() as node:
                return await self._step(node, record)
            case Loop() as loop:
                return await run_loop(loop, step.inside, record, self)
            case Graph() as graph:
                return await self.follow(step.inside, entry(graph.preconditions, record))
        raise TypeError(f"{step.action.name}: a {type(step.action).__name__} cannot be run")

    async def _step(self, node: Node[Struct, Struct], record: Record) -> Record:
        self._at = node.name
        step = f"{node.name}#{self._ran[node.name]}"
        self._ran[node.name] += 1
        taken = self._taken(node, step, record)
        unmet = Unmet("no attempt")
        for number in range(1, node.attempts + 1):
            if number > 1:
                # The attempt before may have changed what it was given.
                taken = fill(node.takes, record)
            attempt = Attempt(node.name, step, number)
            self._attempts.append(attempt)
            try:
                made = _kept(node, await node(taken, **self._given(node, attempt)))
            except (ContextOverflow, RequestRefused) as error:
                unmet = Unmet(_declined(error), str(error), error.outcome)
            except ValidationError as error:
                unmet = _broken(node, error)
            except Unmet as error:
                unmet = error
            else:
                if _failed_by_judge(node, made):
                    attempt.outcome = "judge-rejected"
                if number < node.attempts and _undecided(node, made):
                    # The judge stumbled, not the answer: it is asked again about the same one.
                    attempt.outcome = "unparsable"
                    attempt.unmet = "undecided"
                    attempt.superseded = True
                    continue
                self._writers |= dict.fromkeys(node.postconditions, node.name)
                return made
            attempt.outcome = unmet.outcome
            attempt.unmet = clean(str(unmet))
            if AGAIN[unmet.outcome] != "attempt":
                # The same prompt will fare no better the next time.
                break
            attempt.superseded = number < node.attempts
        raise Rejected(node.name, unmet.reason, unmet.detail)

    def _taken(self, node: Node[Struct, Struct], step: str, record: Record) -> Struct:
        try:
            return fill(node.takes, record)
        except Unmet as error:
            if self._attempts:
                raise RuntimeError(
                    f"the plan promised what the record does not hold: {error}"
                ) from error
            # Nothing has run yet, so this is the gate that turns a seed away.
            turned_away = Attempt(
                node.name, step, 1, outcome=error.outcome, unmet=clean(str(error))
            )
            self._attempts.append(turned_away)
            raise Rejected(node.name, error.reason, error.detail) from error

    def _given(self, node: Node[Struct, Struct], attempt: Attempt) -> dict[str, object]:
        ground = self._ground
        asking = Asking(
            self._id,
            self._draws,
            ground.journal,
            ground.halt,
            ground.watch,
            attempt,
            self._left,
        )
        return {
            role: bind(role, kind, ground.players[role], ground.lanes, asking)
            for role, kind in node.roles.items()
        }

    def _note(self, action: Action) -> None:
        for field, shape in action.postconditions.items():
            self._literal[field] = shape is not None and shape.values is not None

    def _facts(self, record: Record) -> dict[str, Fact]:
        return {
            field: value
            for field, literal in sorted(self._literal.items())
            if literal and isinstance(value := record.get(field), str | int | float | bool)
        }

    def _ended(
        self, outcome: Outcome, node: str = "", reason: str = "", detail: str = ""
    ) -> WalkEnd:
        return WalkEnd(
            id=self._id,
            fingerprint=self._ground.fingerprint,
            seed_id=clean(self._draws.seed_id),
            walk=self._draws.walk,
            passage=self._passage,
            outcome=outcome,
            node=node,
            reason=clean(reason),
            detail=clean(detail),
            attempts=tuple(self._attempts),
        )


def _kept(node: Node[Struct, Struct], made: Struct) -> Record:
    """What a node made, if it is what the node promised; else `Unmet`."""
    if not isinstance(made, node.makes):
        raise TypeError(f"returned {view(made)}, not {node.makes.__name__}")
    # Checked again, since a struct can be made, copied or changed around its own checks.
    held = {name: made.__dict__[name] for name in node.makes.model_fields if name in made.__dict__}
    given = facts(node.makes.model_validate(held))
    unmet = breach(node.postconditions, given)
    if unmet is not None:
        raise unmet
    return given


def _broken(node: Node[Struct, Struct], error: ValidationError) -> Unmet:
    if error.title == node.makes.__name__:
        return broken(node.makes, error)
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return Unmet(f"{error.title}: {place or 'value'}: {first['msg']}", view(first["input"]))


def _undecided(node: Node[Struct, Struct], made: Record) -> bool:
    return node.judges is not None and made.get("verdict") == "undecided"


def _failed_by_judge(node: Node[Struct, Struct], made: Record) -> bool:
    return node.judges is not None and made.get("verdict") not in ("pass", None)


def _declined(error: ContextOverflow | RequestRefused) -> str:
    if isinstance(error, ContextOverflow):
        return "does not fit the model's context"
    return "the model refused the request"


def _failure(error: BaseException) -> tuple[str, str]:
    """A countable phrase for a failure, and what was found."""
    if isinstance(error, TransientModelError):
        return "the model kept failing", str(error)
    if isinstance(error, DataForgeError):
        return type(error).__name__, str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    try:
        said = str(error)
    except Exception as unsaid:
        said = f"its message cannot be read: {type(unsaid).__name__}"
    return type(error).__name__, f"{said} ({Path(frame.filename).name}:{frame.lineno})"


def _conversation(record: Record, target: str) -> tuple[Turn, ...]:
    """What the target gave as `messages`, if it can be trained on; else `Rejected`."""
    said = record.get("messages")
    if not isinstance(said, Sequence) or isinstance(said, str):
        raise Rejected(target, "messages are no list of turns", view(said))
    turns = tuple(_turn(each, target) for each in said)
    if not turns or turns[-1].role != "assistant":
        last = turns[-1].role if turns else "none"
        raise Rejected(target, "messages do not end with an answer", f"the last turn: {last}")
    return turns


def _turn(each: object, target: str) -> Turn:
    turn = each.model_dump() if isinstance(each, BaseModel) else each
    if not isinstance(turn, Mapping) or turn.keys() != {"role", "content"}:
        raise Rejected(target, "a turn holds a role and a content and no more", view(each))
    role, content = turn["role"], turn["content"]
    if role not in _ROLES or not isinstance(content, str):
        raise Rejected(
            target, f"a turn has text and one of the roles {', '.join(_ROLES)}", view(each)
        )
    return Turn(role, clean(content))
