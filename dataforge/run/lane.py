"""The queue of a role's calls, in front of the endpoints that serve its model.

Each call goes to a worker that has room: the least loaded for its weight, and not the one that has
just failed it. Of those waiting, the call of the walk nearest to its end goes first, so that walks
end and what they hold is let go. A rate limit never counts against a call and is tried again for as
long as anyone is served; other failures that may pass are waited out with no slot held, a few times
a call, or tried elsewhere at once. Workers may join and leave at any time: one that leaves is asked
nothing more and finishes what it has. How wide an endpoint is and whether it is up, its gate knows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import NoReturn

from dataforge.errors import FatalModelError, ModelError, RateLimited
from dataforge.models.base import Message, Params, Reply, Transport
from dataforge.run.events import CallFailed, Said, Watch
from dataforge.run.gate import Gate, spread
from dataforge.run.halt import Halt
from dataforge.run.outcome import AGAIN

__all__ = ["TRIES", "Lane", "Worker"]

TRIES = 6
"""How often a call may fail in a way that may pass before its walk fails."""

_came = count()
"""Tells which call came first, over all lanes."""

_NOBODY = (1 << 62, 0)


@dataclass(eq=False, slots=True)
class Worker:
    """One way to reach a lane's model."""

    transport: Transport
    gate: Gate
    """Shared with the other workers at the same endpoint."""
    weight: float = 1.0
    """Its share of the calls, beside the others of its lane; > 0."""
    flying: int = field(default=0, init=False)
    """Its calls in flight."""
    idle: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set while it has no call in flight."""

    def __post_init__(self) -> None:
        self.idle.set()

    def take(self) -> None:
        """A call goes to it."""
        self.flying += 1
        self.idle.clear()
        self.gate.take()

    def free(self) -> None:
        """One of its calls has ended."""
        self.flying -= 1
        if not self.flying:
            self.idle.set()
        self.gate.free()


@dataclass(slots=True)
class _Waiting:
    place: asyncio.Future[Worker | None]
    failed_by: Worker | None


class Lane:
    """The calls of one model."""

    def __init__(self, weights: str, workers: Iterable[Worker], halt: Halt, watch: Watch) -> None:
        """`watch` hears of calls that failed and of workers that are lost."""
        self.weights = weights
        """Identity of the weights, the same whoever serves them."""
        self.workers: list[Worker] = []
        """Those that may be asked."""
        self._halt = halt
        self._watch = watch
        self._waiting: list[tuple[int, int, _Waiting]] = []
        for worker in workers:
            self.join(worker)
        halt.listen(self.admit)

    def join(self, worker: Worker) -> None:
        """Asks a worker too from now on."""
        self.workers.append(worker)
        if self not in worker.gate.queues:
            worker.gate.queues.append(self)
        self.admit()

    async def leave(self, worker: Worker) -> None:
        """Asks a worker nothing more; returns once its calls in flight have ended."""
        if worker in self.workers:
            self.workers.remove(worker)
        if self in worker.gate.queues and all(
            each.gate is not worker.gate for each in self.workers
        ):
            worker.gate.queues.remove(self)
        await worker.idle.wait()

    async def complete(
        self,
        messages: Sequence[Message],
        params: Params,
        jitter: Callable[[int], float],
        left: int = 0,
    ) -> tuple[Reply, float]:
        """The reply and the seconds it took; `jitter(n)` in [0, 1) spreads the n-th wait.

        `left`: steps the walk has before it; the fewest go first. Raises TransientModelError after
        `TRIES` failures, ContextOverflow and RequestRefused at once, and FatalModelError, having
        asked the run to stop, when no worker is left that a retry could help.
        """
        failures = limits = 0
        failed_by: Worker | None = None
        while True:
            worker = await self._enter(left, failed_by)
            gate = worker.gate
            began, burst = time.monotonic(), gate.bursts
            try:
                self._halt.check()
                reply = await worker.transport.complete(messages, params)
            except ModelError as error:
                self._watch(CallFailed(error.outcome))
                again = AGAIN[error.outcome]
                if again == "no":
                    # An answer all the same: the endpoint serves.
                    gate.served()
                    raise
                if again == "stop":
                    self._lose(worker, error)
                    continue
                failed_by = worker
                if again == "always":
                    limits += 1
                    if burst == gate.bursts:
                        self._lose_patience(worker, error)
                    wait = error.retry_after if isinstance(error, RateLimited) else None
                    gate.limited(wait, burst, jitter(failures + limits))
                    continue
                failures += 1
                if gate.down:
                    self._lose_patience(worker, error)
                gate.failed(error, jitter(failures + limits))
                if failures >= TRIES:
                    raise
            else:
                gate.served()
                return reply, time.monotonic() - began
            finally:
                worker.free()
            if not self._another(worker):
                await self._halt.pause(spread(failures, jitter(failures + limits)))

    @property
    def first(self) -> tuple[int, int]:
        """What ranks the call to go next."""
        return self._waiting[0][:2] if self._waiting else _NOBODY

    def admit(self) -> None:
        """Gives those waiting to workers with room; all of them at a stop, to hear of it."""
        passed = []
        while self._waiting:
            waiting = self._waiting[0][2]
            worker = self._pick(waiting.failed_by)
            if worker is None and not self._halt.asked:
                if not any(each.gate.open for each in self.workers):
                    break
                # There is room, but with the one that failed it: others need not wait for that.
                passed.append(heappop(self._waiting))
                continue
            heappop(self._waiting)
            if not waiting.place.done():
                if worker is not None:
                    worker.take()
                waiting.place.set_result(worker)
        for each in passed:
            heappush(self._waiting, each)

    async def _enter(self, left: int, failed_by: Worker | None) -> Worker:
        """Waits for a worker with room and takes a slot of it."""
        if not self._waiting and (free := self._pick(failed_by)):
            free.take()
            return free
        waiting = _Waiting(asyncio.get_running_loop().create_future(), failed_by)
        heappush(self._waiting, (left, next(_came), waiting))
        self.admit()
        try:
            worker = await waiting.place
        except asyncio.CancelledError:
            if not waiting.place.cancelled() and (worker := waiting.place.result()):
                worker.free()
            raise
        if worker is None:
            self._halt.check()
            raise AssertionError("sent home while the run goes on")
        return worker

    def _pick(self, failed_by: Worker | None) -> Worker | None:
        """The worker for the next call, by its load; None while none has room."""
        able = [worker for worker in self.workers if worker.gate.open]
        if failed_by is not None and self._another(failed_by):
            able = [worker for worker in able if worker is not failed_by]
        return min(able, key=_load, default=None)

    def _another(self, failed: Worker) -> bool:
        """Whether there is another worker to try that is up and not told to wait."""
        gates = (each.gate for each in self.workers if each is not failed)
        return any(not (gate.down or gate.shut) for gate in gates)

    def _lose_patience(self, worker: Worker, error: ModelError) -> None:
        """Stops the run when no worker has served anyone for too long."""
        if worker in self.workers and all(each.gate.given_up for each in self.workers):
            self._stop(_worn_out(error, worker.gate.waited))

    def _lose(self, worker: Worker, error: ModelError) -> None:
        """Goes on without a worker that can serve nobody; stops the run if it was the last."""
        if worker not in self.workers:
            # It was left out, or taken out of its file, while the call was in flight.
            return
        rest = [each for each in self.workers if each is not worker]
        if not rest:
            self._stop(error)
        self.workers = rest
        self._watch(Said(f"a worker is left out from now on: {error}"))

    def _stop(self, error: ModelError) -> NoReturn:
        self._halt.stop(error)
        raise error


def _load(worker: Worker) -> float:
    return (worker.flying + 1) / worker.weight


def _worn_out(error: ModelError, waited: float) -> FatalModelError:
    return FatalModelError(
        f"{error}; no call was served in {waited / 60:.0f} minutes of waiting. "
        "Give the same command again later: it repeats no finished call"
    )
