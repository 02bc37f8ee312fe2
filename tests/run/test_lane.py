"""A lane keeps its limit, waits out what may pass, and stops the run for what will not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from dataforge.errors import FatalModelError, RateLimited, RequestRefused, TransientModelError
from dataforge.models.base import Message, Params
from dataforge.run.halt import Halt, Stopped
from dataforge.run.lane import PATIENCE, TRIES, Lane
from tests.run.scene import Voice

ASKED = [Message("user", "hello")]


def even(n: int) -> float:
    return 0.5


class Clock:
    """Sleeps by adding up."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


class Failing:
    """Raises the given errors, one a call, then replies."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def __call__(self, messages: Sequence[Message], params: Params) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "at last"


async def test_failures_that_pass_are_waited_out_longer_each_time() -> None:
    clock = Clock()
    voice = Voice(Failing(*(TransientModelError("dropped") for _ in range(TRIES - 1))))
    reply, _ = await Lane(voice, Halt(clock.sleep)).complete(ASKED, Params(), even)
    assert reply.text == "at last"
    assert clock.waits == sorted(clock.waits)
    assert len(set(clock.waits)) == TRIES - 1


async def test_a_call_that_fails_every_time_is_given_up() -> None:
    voice = Voice(Failing(*(TransientModelError("dropped") for _ in range(TRIES))))
    with pytest.raises(TransientModelError, match="dropped"):
        await Lane(voice, Halt(Clock().sleep)).complete(ASKED, Params(), even)
    assert len(voice.asked) == TRIES


async def test_rate_limits_outlast_the_tries_and_retry_after_is_honoured() -> None:
    clock = Clock()
    limits = [RateLimited("slow down", retry_after=7.0) for _ in range(3 * TRIES)]
    reply, _ = await Lane(Voice(Failing(*limits)), Halt(clock.sleep)).complete(
        ASKED, Params(), even
    )
    assert reply.text == "at last"
    assert min(clock.waits) >= 7.0


async def test_an_endpoint_that_serves_nobody_stops_the_run() -> None:
    clock = Clock()
    halt = Halt(clock.sleep)

    def never(messages: Sequence[Message], params: Params) -> str:
        raise RateLimited("slow down", retry_after=60.0)

    with pytest.raises(FatalModelError, match=r"slow down; no call was served in 1[5-7] minutes"):
        await Lane(Voice(never), halt).complete(ASKED, Params(), even)
    assert isinstance(halt.cause, FatalModelError)
    assert PATIENCE <= sum(clock.waits) < PATIENCE + max(clock.waits)


async def test_one_long_wait_asked_for_is_waited_and_not_held_against_the_endpoint() -> None:
    clock = Clock()
    halt = Halt(clock.sleep)
    voice = Voice(Failing(RateLimited("come back tomorrow", retry_after=100 * PATIENCE)))
    reply, _ = await Lane(voice, halt).complete(ASKED, Params(), even)
    assert reply.text == "at last"
    assert sum(clock.waits) >= 100 * PATIENCE
    assert halt.cause is None


async def test_a_refused_request_is_raised_at_once_and_stops_nothing() -> None:
    halt = Halt(Clock().sleep)
    voice = Voice(Failing(RequestRefused("content filter")))
    lane = Lane(voice, halt)
    with pytest.raises(RequestRefused, match="content filter"):
        await lane.complete(ASKED, Params(), even)
    assert not halt.asked
    assert (await lane.complete(ASKED, Params(), even))[0].text == "at last"


async def test_patience_begins_anew_whenever_anyone_is_served() -> None:
    clock = Clock()
    served = 0

    def mostly(messages: Sequence[Message], params: Params) -> str:
        nonlocal served
        if messages[-1].content == "unlucky" and served < 40:
            raise RateLimited("slow down", retry_after=60.0)
        served += 1
        return "done"

    lane = Lane(Voice(mostly, limit=1), Halt(clock.sleep))
    unlucky = asyncio.create_task(lane.complete([Message("user", "unlucky")], Params(), even))
    while not unlucky.done():
        await lane.complete(ASKED, Params(), even)
        await asyncio.sleep(0)
    assert (await unlucky)[0].text == "done"


async def test_a_fatal_error_stops_the_run_at_once() -> None:
    halt = Halt(Clock().sleep)
    voice = Voice(Failing(FatalModelError("no such key; set DATAFORGE_API_KEY")))
    with pytest.raises(FatalModelError, match="set DATAFORGE_API_KEY"):
        await Lane(voice, halt).complete(ASKED, Params(), even)
    assert halt.asked
    assert len(voice.asked) == 1


async def test_no_more_calls_at_once_than_the_limit() -> None:
    voice = Voice(limit=3)
    lane = Lane(voice, Halt())
    asked = [[Message("user", f"question {n}")] for n in range(40)]
    await asyncio.gather(*(lane.complete(each, Params(), even) for each in asked))
    assert voice.most_at_once == 3


async def test_waiting_holds_no_slot() -> None:
    turns = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await turns.wait()

    lane = Lane(Voice(Failing(RateLimited("slow down")), limit=1), Halt(sleep))
    first = asyncio.create_task(lane.complete(ASKED, Params(), even))
    await asyncio.sleep(0)
    second, _ = await lane.complete(ASKED, Params(), even)
    assert second.text == "at last"
    assert not first.done()
    turns.set()
    assert (await first)[0].text == "at last"


async def test_stopping_ends_a_wait_and_lets_no_call_begin() -> None:
    waits = asyncio.Event()

    async def forever(seconds: float) -> None:
        waits.set()
        await asyncio.Event().wait()

    halt = Halt(forever)
    voice = Voice(Failing(RateLimited("slow down")))
    lane = Lane(voice, halt)
    waiting = asyncio.create_task(lane.complete(ASKED, Params(), even))
    await waits.wait()
    halt.stop()
    with pytest.raises(Stopped):
        await waiting
    with pytest.raises(Stopped):
        await lane.complete(ASKED, Params(), even)
    assert len(voice.asked) == 1
