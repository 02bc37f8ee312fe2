"""Walks on a Ray cluster: each process owns parts of the plan and their logs.

A walk belongs to the same part whoever makes it, and draws from a counter, so the corpus is that of
one process, byte for byte. A process or machine that dies loses nothing that was finished: its part
goes to another, which finds the logs and goes on. Machines share the run directory, the library and
the seeds by a common file system, and have the models' keys in their own environment: none is sent.
Budgets and progress follow what the processes tell twice a second.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dataforge.commands.hand import Hand
from dataforge.commands.ordering import Request
from dataforge.errors import DataForgeError, RunError, UsageError
from dataforge.run.finish import EndedWalks, ended_walks
from dataforge.run.logs import part_name
from dataforge.run.parts import Part, parts

if TYPE_CHECKING:
    from dataforge.run.sitting import Sitting
    from dataforge.run.trace import Outcome

__all__ = ["RayCrew"]

_EVERY_S = 0.5
_ANSWER_S = 30.0
_ROOM_S = 10.0
"""Seconds without room for any process after which the user is told."""
_DEATHS = 5
"""Deaths in a row, with no part finished between, after which a run is stopped."""


class RayCrew:
    """Makes a sitting's walks on a Ray cluster; use it in a `with`."""

    parted = True

    def __init__(self, request: Request, specs: Iterable[str]) -> None:
        """`specs`: of all models that play. UsageError when Ray is missing or not reached."""
        if find_spec("ray") is None:
            raise UsageError("--on ray needs Ray: pip install 'dataforge-dag[ray]'")
        # Read when Ray is imported: it reports its use to its makers otherwise.
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        import ray

        out = request.out.absolute()
        self._request = replace(request, out=out, on=None, address=None, hands=None)
        self._gpus = 1 if any(spec.startswith("vllm:") for spec in specs) else 0
        _reach(request.address)
        minded = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            ray.init(
                address=request.address,
                namespace="dataforge",
                include_dashboard=None if request.address else False,
                log_to_driver=False,
                configure_logging=False,
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise UsageError(
                f"--on ray: no cluster at {request.address or 'this machine'} "
                f"({str(error).splitlines()[0]})"
            ) from None
        for each, handler in minded.items():
            # Ray puts its own in their place, which end the process at once.
            signal.signal(each, handler or signal.SIG_DFL)
        of_each = ray.cluster_resources().get("GPU" if self._gpus else "CPU", 1)
        self._hands = request.hands or max(1, int(of_each))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import ray

        ray.shutdown()

    async def walk(self, sitting: Sitting) -> None:
        """Makes all walks of the plan that are not made yet, until the aim is reached or a halt."""
        todo = deque(_todo(sitting))
        if todo:
            await _Work(self._request, self._gpus, sitting, todo).go(self._hands)


class _Work:
    def __init__(self, request: Request, gpus: int, sitting: Sitting, todo: deque[Part]) -> None:
        import ray

        self._ray = ray
        self._request = request
        self._gpus = gpus
        self._sitting = sitting
        self._todo = todo
        self._hands: dict[Any, asyncio.Task[None]] = {}
        """Those that are there, each with who listens to it."""
        self._deaths = 0
        self._told_of_room = False

    async def go(self, hands: int) -> None:
        self._sitting.halt.listen(self._stop)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(hands, len(self._todo))):
                group.create_task(self._work())

    @property
    def _wanted(self) -> bool:
        """There is a part to begin."""
        sitting = self._sitting
        return bool(self._todo) and not (sitting.halt.asked or sitting.aim.reached)

    async def _work(self) -> None:
        """One hand's turn at the parts; another hand's, where the first dies."""
        hand = None
        while self._wanted:
            part = None
            try:
                hand = hand or await self._hire()
                if hand is None or not self._wanted:
                    break
                part = self._todo.popleft()
                cause = await hand.walk.remote(part)
                await self._hear(hand)
            except self._ray.exceptions.RayActorError as error:
                if part is not None:
                    self._todo.appendleft(part)
                self._bury(hand)
                hand = None
                self._mourn(error)
                continue
            except self._ray.exceptions.RayTaskError as error:
                self._halt_for(error)
                break
            self._deaths = 0
            self._note(part, cause)
        if hand is not None:
            await self._dismiss(hand)

    async def _hire(self) -> Any:
        """A hand, once the cluster has room for it; None where none is wanted any more by then."""
        actor = self._ray.remote(Hand).options(num_cpus=1, num_gpus=self._gpus)
        hand = actor.remote(self._request, self._sitting.manifest, str(Path.cwd()))
        there = asyncio.ensure_future(hand.told.remote())
        looks = 0
        while self._wanted:
            done, _ = await asyncio.wait({there}, timeout=_EVERY_S)
            if done:
                there.result()
                self._hands[hand] = asyncio.create_task(self._listen(hand))
                return hand
            looks += 1
            if looks * _EVERY_S >= _ROOM_S:
                self._say_no_room()
        there.cancel()
        self._ray.kill(hand)
        return None

    def _say_no_room(self) -> None:
        if not (self._hands or self._told_of_room):
            self._told_of_room = True
            needs = "a CPU and a GPU" if self._gpus else "a CPU"
            self._sitting.say(
                f"the cluster has no room yet for a process, which needs {needs}; waiting. "
                "`ray status` on one of its machines says what it has"
            )

    async def _dismiss(self, hand: Any) -> None:
        # Its last word is waited for, as it counts towards a budget.
        await self._hands.pop(hand)
        with suppress(self._ray.exceptions.RayError, TimeoutError):
            await asyncio.wait_for(hand.close.remote(), _ANSWER_S)
        self._ray.kill(hand)

    def _bury(self, hand: Any) -> None:
        """Makes sure that a hand which is taken for dead is, since its parts go to another."""
        if hand is not None:
            self._hands.pop(hand).cancel()
            self._ray.kill(hand)

    def _mourn(self, error: Exception) -> None:
        self._deaths += 1
        said = str(error).strip().splitlines()[0]
        if self._deaths > _DEATHS:
            self._sitting.halt.stop(
                RunError(f"{self._deaths} processes of the cluster died one after another: {said}")
            )
        else:
            self._sitting.say(f"a process of the cluster died; its walks go on elsewhere ({said})")

    def _halt_for(self, error: Exception) -> None:
        cause = getattr(error, "cause", None)
        known = isinstance(cause, DataForgeError)
        self._sitting.halt.stop(
            cause if known else RunError(f"in a process of the cluster: {error}")
        )

    def _note(self, part: Part, cause: Exception | None) -> None:
        """Takes over how a part's walks ended, from its log."""
        sitting = self._sitting
        if cause is not None:
            sitting.halt.stop(cause)
        for place, outcome in _outcomes(sitting, part):
            sitting.aim.see(place, outcome)
        if sitting.aim.reached:
            self._stop()

    def _stop(self) -> None:
        for hand in self._hands:
            hand.stop.remote()

    async def _listen(self, hand: Any) -> None:
        while hand in self._hands:
            await asyncio.sleep(_EVERY_S)
            try:
                await self._hear(hand)
            except self._ray.exceptions.RayError:
                # Whether it died is for whoever waits for its part to find out.
                return

    async def _hear(self, hand: Any) -> None:
        for event in await hand.told.remote():
            self._sitting.watch(event)


def _reach(address: str | None) -> None:
    """Raises UsageError when nobody listens at an address, for which Ray would wait minutes."""
    if address is None or address == "auto":
        return
    host, _, port = address.rpartition("//")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), _ANSWER_S).close()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--on ray: no cluster at {address} ({error}); `ray status` on one of its machines "
            "says where it is, or leave --address out"
        ) from None


def _todo(sitting: Sitting) -> Iterator[Part]:
    """The parts with walks to make, in the order of the plan; the aim sees those that are whole."""
    ended = ended_walks(sitting.folder, sitting.manifest.fingerprint)
    for part in parts(sitting.plan.total):
        if sitting.aim.reached:
            return
        kept = dict(_seen(sitting, part, ended))
        if len(kept) == part.stop - part.start and "failed" not in kept.values():
            for place, outcome in kept.items():
                sitting.aim.see(place, outcome)
        else:
            yield part


def _outcomes(sitting: Sitting, part: Part) -> Iterator[tuple[int, Outcome]]:
    """Place and outcome of the walks of a part that have ended, from its own log."""
    name = part_name(part.number)
    ended = EndedWalks(sitting.folder, [name], sitting.manifest.fingerprint)
    return _seen(sitting, part, ended)


def _seen(sitting: Sitting, part: Part, ended: EndedWalks) -> Iterator[tuple[int, Outcome]]:
    for place, planned in enumerate(sitting.plan.stretch(part.start, part.stop), part.start):
        end = ended.get(sitting.name(planned))
        if end is not None:
            yield place, end.outcome
