"""A lane keeps its limit, waits out what may pass, and stops the run for what will not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from dataforge.errors import FatalModelError, RateLimited, RequestRefused, TransientModelError
from dataforge.models.base import Message, Params, Reply, Transport
from dataforge.run.events import CallFailed, Event, Said
from dataforge.run.gate import DOWN, OPENING, PATIENCE, Gate
from dataforge.run.halt import Halt, Stopped
from dataforge.run.lane import TRIES, Lane, Worker
from tests.run.scene import Voice

ASKED = [Message("user", "hello")]


def even(n: int) -> float:
    return 0.5


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0)


def worker(transport: Transport, halt: Halt, share: float = 1.0) -> Worker:
    return Worker(transport, Gate(transport.limit, halt), share)


def alone(transport: Transport, halt: Halt) -> Lane:
    """A lane with one worker."""
    return Lane(transport.weights, [worker(transport, halt)], halt, lambda text: None)


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
    voice = Voice(Failing(*(TransientModelError("dropped") for _ in range(DOWN - 1))))
    reply, _ = await alone(voice, Halt(clock.sleep)).complete(ASKED, Params(), even)
    assert reply.text == "at last"
    assert clock.waits == sorted(clock.waits)
    assert len(set(clock.waits)) == DOWN - 1


async def test_a_call_that_fails_every_time_is_given_up() -> None:
    voice = Voice(Failing(*(TransientModelError("dropped") for _ in range(TRIES))))
    with pytest.raises(TransientModelError, match="dropped"):
        await alone(voice, Halt(Clock().sleep)).complete(ASKED, Params(), even)
    assert len(voice.asked) == TRIES


async def test_rate_limits_outlast_the_tries_and_retry_after_is_honoured() -> None:
    clock = Clock()
    limits = [RateLimited("slow down", retry_after=7.0) for _ in range(3 * TRIES)]
    reply, _ = await alone(Voice(Failing(*limits)), Halt(clock.sleep)).complete(
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
        await alone(Voice(never), halt).complete(ASKED, Params(), even)
    assert isinstance(halt.cause, FatalModelError)
    assert PATIENCE <= sum(clock.waits) < PATIENCE + max(clock.waits)


async def test_one_long_wait_asked_for_is_waited_and_not_held_against_the_endpoint() -> None:
    clock = Clock()
    halt = Halt(clock.sleep)
    voice = Voice(Failing(RateLimited("come back tomorrow", retry_after=100 * PATIENCE)))
    reply, _ = await alone(voice, halt).complete(ASKED, Params(), even)
    assert reply.text == "at last"
    assert sum(clock.waits) >= 100 * PATIENCE
    assert halt.cause is None


async def test_a_refused_request_is_raised_at_once_and_stops_nothing() -> None:
    halt = Halt(Clock().sleep)
    voice = Voice(Failing(RequestRefused("content filter")))
    lane = alone(voice, halt)
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

    lane = alone(Voice(mostly, limit=1), Halt(clock.sleep))
    unlucky = asyncio.create_task(lane.complete([Message("user", "unlucky")], Params(), even))
    while not unlucky.done():
        await lane.complete(ASKED, Params(), even)
        await asyncio.sleep(0)
    assert (await unlucky)[0].text == "done"


async def test_a_fatal_error_stops_the_run_at_once() -> None:
    halt = Halt(Clock().sleep)
    voice = Voice(Failing(FatalModelError("no such key; set DATAFORGE_API_KEY")))
    with pytest.raises(FatalModelError, match="set DATAFORGE_API_KEY"):
        await alone(voice, halt).complete(ASKED, Params(), even)
    assert halt.asked
    assert len(voice.asked) == 1


async def test_no_more_calls_at_once_than_the_limit() -> None:
    voice = Voice(limit=3)
    lane = alone(voice, Halt())
    asked = [[Message("user", f"question {n}")] for n in range(40)]
    await asyncio.gather(*(lane.complete(each, Params(), even) for each in asked))
    assert voice.most_at_once == 3


async def test_waiting_holds_no_slot() -> None:
    turns = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await turns.wait()

    lane = alone(Voice(Failing(TransientModelError("dropped")), limit=1), Halt(sleep))
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
    lane = alone(voice, halt)
    waiting = asyncio.create_task(lane.complete(ASKED, Params(), even))
    await waits.wait()
    halt.stop()
    with pytest.raises(Stopped):
        await waiting
    with pytest.raises(Stopped):
        await lane.complete(ASKED, Params(), even)
    assert len(voice.asked) == 1


class Crowded:
    """Refuses every call while more than `most` are in flight, then replies to all."""

    weights = "crowded"

    def __init__(self, limit: int, most: int) -> None:
        self.limit = limit
        self.most = most
        self.flying = 0
        self.peak = 0
        self.refused = 0
        self.order: list[str] = []

    async def complete(self, messages: Sequence[Message], params: Params) -> Reply:
        self.flying += 1
        self.peak = max(self.peak, self.flying)
        crowded = self.flying > self.most
        try:
            for _ in range(4):
                await asyncio.sleep(0)
            if crowded:
                self.refused += 1
                raise RateLimited("slow down", retry_after=1.0)
            self.order.append(messages[-1].content)
            return Reply(text="done", finish="stop", tokens_in=1, tokens_out=1)
        finally:
            self.flying -= 1

    async def close(self) -> None: ...


async def ask_all(lane: Lane, count: int) -> None:
    asked = [[Message("user", f"question {n}")] for n in range(count)]
    await asyncio.gather(*(lane.complete(each, Params(), even) for each in asked))


async def test_a_lane_opens_narrow_and_widens_to_the_limit_as_it_is_served() -> None:
    voice = Crowded(limit=40, most=1_000)
    lane = alone(voice, Halt())
    assert lane.workers[0].gate.width == OPENING
    await ask_all(lane, OPENING)
    assert voice.peak == OPENING
    await ask_all(lane, 300)
    assert (lane.workers[0].gate.width, voice.peak) == (40, 40)


async def test_a_burst_of_refusals_costs_one_pause_and_one_halving() -> None:
    clock = Clock()
    voice = Crowded(limit=OPENING, most=OPENING // 2)
    lane = alone(voice, Halt(clock.sleep))
    await ask_all(lane, OPENING)
    assert voice.refused == OPENING // 2
    assert len(clock.waits) == 1
    assert OPENING / 2 <= lane.workers[0].gate.width < OPENING
    assert len(voice.order) == OPENING


async def test_nothing_is_asked_while_a_lane_cools_and_all_is_asked_after() -> None:
    cooled = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await cooled.wait()

    voice = Voice(Failing(RateLimited("slow down")), limit=4)
    lane = alone(voice, Halt(sleep))
    first = asyncio.create_task(lane.complete(ASKED, Params(), even))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    others = [asyncio.create_task(lane.complete(ASKED, Params(), even)) for _ in range(3)]
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(voice.asked) == 1
    cooled.set()
    await asyncio.gather(first, *others)
    assert len(voice.asked) == 5


async def test_a_lane_settles_near_what_the_endpoint_takes() -> None:
    voice = Crowded(limit=64, most=10)
    lane = alone(voice, Halt(Clock().sleep))
    await ask_all(lane, 1_000)
    assert len(voice.order) == 1_000
    assert lane.workers[0].gate.width <= 12
    assert voice.refused < 400


async def test_the_call_of_the_walk_nearest_its_end_goes_first() -> None:
    voice = Crowded(limit=1, most=9)
    lane = alone(voice, Halt())
    asked = [("far", 5), ("near", 1), ("middle", 3), ("near too", 1)]
    await asyncio.gather(
        *(lane.complete([Message("user", each)], Params(), even, left) for each, left in asked)
    )
    assert voice.order[1:] == ["near", "near too", "middle"]


async def test_a_call_given_up_while_it_waits_holds_no_slot() -> None:
    voice = Crowded(limit=1, most=9)
    lane = alone(voice, Halt())
    tasks = [asyncio.create_task(lane.complete(ASKED, Params(), even)) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert len(voice.order) == 2
    await lane.complete(ASKED, Params(), even)


async def test_a_stop_sends_home_all_who_wait_for_a_lane_to_cool() -> None:
    async def forever(seconds: float) -> None:
        await asyncio.Event().wait()

    halt = Halt(forever)
    voice = Voice(Failing(RateLimited("slow down")), limit=4)
    lane = alone(voice, halt)
    tasks = [asyncio.create_task(lane.complete(ASKED, Params(), even))]
    for _ in range(20):
        await asyncio.sleep(0)
    tasks += [asyncio.create_task(lane.complete(ASKED, Params(), even)) for _ in range(5)]
    await asyncio.sleep(0)
    halt.stop()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(each, Stopped) for each in ended)
    assert len(voice.asked) == 1


class Named:
    """Counts its calls; fails with what it is told to, as long as it is told so."""

    weights = "same"

    def __init__(self, limit: int = 4) -> None:
        self.limit = limit
        self.flying = 0
        self.replies = 0
        self.failures = 0
        self.broken: Exception | None = None

    async def complete(self, messages: Sequence[Message], params: Params) -> Reply:
        self.flying += 1
        try:
            for _ in range(3):
                await asyncio.sleep(0)
            if self.broken is not None:
                self.failures += 1
                raise self.broken
            self.replies += 1
            return Reply(text=messages[-1].content, finish="stop", tokens_in=1, tokens_out=1)
        finally:
            self.flying -= 1

    async def close(self) -> None: ...


def together(halt: Halt, *models: Named, shares: Sequence[float] = (), told: list[Event]) -> Lane:
    shares = shares or [1.0] * len(models)
    workers = [worker(each, halt, share) for each, share in zip(models, shares, strict=True)]
    return Lane("same", workers, halt, told.append)


async def test_calls_are_shared_by_weight() -> None:
    one, two = Named(limit=60), Named(limit=60)
    lane = together(Halt(), one, two, shares=[1, 3], told=[])
    for each in lane.workers:
        each.gate.width = 60
    asked = [asyncio.create_task(lane.complete(ASKED, Params(), even)) for _ in range(40)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (one.flying, two.flying) == (10, 30)
    await asyncio.gather(*asked)


async def test_one_of_three_dies_under_load_and_nothing_is_lost_or_asked_twice() -> None:
    clock = Clock()
    halt = Halt(clock.sleep)
    models = [Named() for _ in range(3)]
    lane = together(halt, *models, told=[])
    first = asyncio.create_task(ask_all(lane, 100))
    await until(lambda: models[1].replies >= 5)
    models[1].broken = TransientModelError("the connection failed")
    await first
    await ask_all(lane, 300)
    assert sum(each.replies for each in models) == 400
    assert lane.workers[1].gate.down
    assert models[1].failures < 60
    models[1].broken = None
    before = models[1].replies
    await ask_all(lane, 300)
    assert models[1].replies > before
    assert not lane.workers[1].gate.down


async def test_a_call_goes_elsewhere_at_once_and_not_back_to_who_failed_it() -> None:
    clock = Clock()
    one, two = Named(), Named()
    one.broken = TransientModelError("the connection failed")
    lane = together(Halt(clock.sleep), one, two, told=[])
    for _ in range(DOWN - 1):
        await lane.complete(ASKED, Params(), even)
    assert (one.failures, two.replies) == (DOWN - 1, DOWN - 1)
    assert clock.waits == []


async def test_a_worker_that_can_serve_nobody_is_left_out_while_others_can() -> None:
    told: list[Event] = []
    halt = Halt()
    one, two = Named(), Named()
    one.broken = FatalModelError("no such model")
    lane = together(halt, one, two, told=told)
    await ask_all(lane, 50)
    assert two.replies == 50
    assert [each for each in told if isinstance(each, Said)] == [
        Said("a worker is left out from now on: no such model")
    ]
    assert told.count(CallFailed("fatal")) == one.failures
    assert not halt.asked
    two.broken = FatalModelError("no credit left")
    with pytest.raises(FatalModelError, match="no credit left"):
        await lane.complete(ASKED, Params(), even)
    assert halt.asked


async def test_a_worker_joins_and_is_asked_and_leaves_once_its_calls_have_ended() -> None:
    halt = Halt()
    one, two = Named(), Named()
    lane = together(halt, one, told=[])
    load = asyncio.create_task(ask_all(lane, 200))
    await asyncio.sleep(0)
    joined = worker(two, halt)
    lane.join(joined)
    await until(lambda: two.replies >= 10)
    await lane.leave(joined)
    assert two.flying == 0
    served = two.replies
    await load
    assert two.replies == served
    assert one.replies + two.replies == 200


async def test_calls_wait_while_there_is_no_worker_and_go_when_one_comes() -> None:
    halt = Halt()
    lane = Lane("same", [], halt, lambda text: None)
    load = asyncio.create_task(ask_all(lane, 20))
    for _ in range(5):
        await asyncio.sleep(0)
    lane.join(worker(Named(), halt))
    await load
    late = asyncio.create_task(
        Lane("same", [], halt, lambda text: None).complete(ASKED, Params(), even)
    )
    await asyncio.sleep(0)
    halt.stop()
    with pytest.raises(Stopped):
        await late


async def test_a_call_that_shuns_a_worker_holds_up_no_other() -> None:
    halt = Halt(Clock().sleep)
    one, two = Named(limit=1), Named(limit=1)
    lane = together(halt, one, two, told=[])
    held = lane.workers[1]
    held.take()
    one.broken = TransientModelError("the connection failed")
    shunning = asyncio.create_task(lane.complete(ASKED, Params(), even, left=0))
    await until(lambda: one.failures == 1)
    one.broken = None
    await asyncio.wait_for(lane.complete(ASKED, Params(), even, left=9), 30)
    assert (one.replies, two.replies, shunning.done()) == (1, 0, False)
    held.free()
    await shunning
    assert (one.replies, two.replies) == (1, 1)


async def test_a_call_goes_back_to_who_failed_it_where_the_others_were_told_to_wait() -> None:
    async def sleep(seconds: float) -> None:
        await (asyncio.Event().wait() if seconds > 100 else asyncio.sleep(0))

    one, two = Named(limit=1), Named(limit=1)
    lane = together(Halt(sleep), one, two, told=[])
    lane.workers[1].gate.limited(3600.0, 0, 0.5)
    one.broken = TransientModelError("the connection failed")
    call = asyncio.create_task(lane.complete(ASKED, Params(), even))
    await until(lambda: one.failures == 1)
    one.broken = None
    await asyncio.wait_for(call, 30)
    assert (one.replies, two.replies) == (1, 0)


async def test_what_becomes_of_a_worker_that_has_left_stops_nothing() -> None:
    halt = Halt()
    one = Named()
    lane = together(halt, one, told=[])
    one.broken = FatalModelError("it shuts down")
    call = asyncio.create_task(lane.complete(ASKED, Params(), even))
    await until(lambda: one.flying == 1)
    await lane.leave(lane.workers[0])
    two = Named()
    lane.join(worker(two, halt))
    await asyncio.wait_for(call, 30)
    assert (two.replies, halt.asked) == (1, False)


async def test_lanes_at_one_endpoint_share_its_limit_and_the_nearest_to_its_end_goes_first() -> (
    None
):
    halt = Halt()
    model = Crowded(limit=1, most=9)
    gate = Gate(1, halt)
    lanes = [Lane("same", [Worker(model, gate)], halt, lambda text: None) for _ in range(2)]
    asked = [("far", 0, 5), ("middle", 0, 3), ("near", 1, 1), ("mid", 1, 2)]
    await asyncio.gather(
        *(lanes[n].complete([Message("user", who)], Params(), even, left) for who, n, left in asked)
    )
    assert model.order == ["far", "near", "mid", "middle"]
    assert model.peak == 1


async def test_an_endpoint_that_is_down_lets_one_call_through_at_a_time_to_see() -> None:
    model = Named(limit=8)
    model.broken = TransientModelError("the connection failed")
    clock = Clock()
    halt = Halt(clock.sleep)
    lane = alone(model, halt)
    tasks = [asyncio.create_task(lane.complete(ASKED, Params(), even)) for _ in range(30)]
    await until(lambda: lane.workers[0].gate.down)
    await until(lambda: lane.workers[0].gate.flying <= 1)
    most = 0
    for _ in range(40):
        await asyncio.sleep(0)
        most = max(most, model.flying)
    assert most == 1
    model.broken = None
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(each, tuple | TransientModelError) for each in ended)
    assert sum(isinstance(each, tuple) for each in ended) >= 20


async def test_an_endpoint_that_stays_down_stops_the_run_and_does_not_fail_every_walk() -> None:
    model = Named(limit=8)
    model.broken = TransientModelError("the connection failed")
    halt = Halt(Clock().sleep)
    lane = alone(model, halt)
    asked = (lane.complete(ASKED, Params(), even) for _ in range(1_000))
    ended = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(halt.cause, FatalModelError)
    assert "no call was served in 1" in str(halt.cause)
    failed = sum(type(each) is TransientModelError for each in ended)
    assert failed < 20
    assert all(isinstance(each, Stopped | FatalModelError | TransientModelError) for each in ended)


async def test_the_user_is_told_of_an_endpoint_that_is_down_once_and_when_it_is_back() -> None:
    told: list[str] = []
    model = Named()
    model.broken = TransientModelError("m at http://h: the connection failed")
    halt = Halt(Clock().sleep)
    gate = Gate(model.limit, halt, told.append)
    lane = Lane("same", [Worker(model, gate)], halt, lambda event: None)
    tasks = [asyncio.create_task(lane.complete(ASKED, Params(), even)) for _ in range(9)]
    await until(lambda: model.failures > DOWN + 2)
    model.broken = None
    await asyncio.gather(*tasks, return_exceptions=True)
    await lane.complete(ASKED, Params(), even)
    assert told == [
        "taken for down, and tried again now and then: m at http://h: the connection failed",
        "an endpoint that was down answers again",
    ]


async def test_the_user_is_told_of_a_long_wait_that_an_endpoint_asks_for() -> None:
    told: list[str] = []
    voice = Voice(Failing(RateLimited("slow down", retry_after=90.0)))
    halt = Halt(Clock().sleep)
    gate = Gate(voice.limit, halt, told.append)
    await Lane("voice", [Worker(voice, gate)], halt, lambda event: None).complete(
        ASKED, Params(), even
    )
    assert told == ["waiting 90 s, as an endpoint asks to slow down"]
