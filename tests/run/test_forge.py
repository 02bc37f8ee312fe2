"""A run makes the same corpus however it is made, loses no walk, and repeats no finished call."""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataforge.corpus.store import read_calls, read_samples
from dataforge.errors import (
    FatalModelError,
    InputError,
    RateLimited,
    RunError,
    RunMismatch,
    SharedWeights,
    TransientModelError,
    UsageError,
)
from dataforge.library.seeds import read_seeds
from dataforge.models.base import Message, Params
from dataforge.plan.graph import Graph
from dataforge.plan.node import node
from dataforge.run.events import Event, WalkEnded
from dataforge.run.finish import ended_walks
from dataforge.run.forge import Order, forge
from dataforge.run.halt import Halt
from dataforge.run.manifest import load_manifest
from dataforge.run.roles import OpenJudge, OpenModel, Role
from dataforge.run.seed import Seed, SeedStore
from tests.run.scene import (
    NODES,
    Chat,
    Coin,
    Passed,
    Voice,
    bytes_of,
    echo,
    hashed,
    no_sleep,
    order,
    run,
)


async def test_concurrency_changes_no_byte(tmp_path: Path) -> None:
    for concurrency in (1, 16):
        await run(replace(order(40), concurrency=concurrency), tmp_path / str(concurrency))
    assert bytes_of(tmp_path / "1") == bytes_of(tmp_path / "16")


async def test_the_tables_hold_the_accepted_and_every_call_behind_them(tmp_path: Path) -> None:
    voice = Voice()
    report = await run(order(60, voice), tmp_path / "run")
    samples = list(read_samples(tmp_path / "run" / "corpus.parquet"))
    calls = list(read_calls(tmp_path / "run" / "calls.parquet"))
    assert len(samples) == report.accepted > 0
    assert report.accepted + report.rejected == 60
    assert [sample.seed_id for sample in samples] == sorted(
        (sample.seed_id for sample in samples), key=lambda name: int(name.removeprefix("seed-"))
    )
    assert {call.sample_id for call in calls} == {sample.id for sample in samples}
    assert {call.kind for call in calls} == {"transform", "ask", "answer"}
    for sample in samples:
        last = [c for c in calls if c.sample_id == sample.id and not c.superseded][-1]
        assert last.messages[-1].content == sample.messages[-1].content
    assert any(call.superseded for call in calls)
    assert report.total.calls == report.new == len(voice.asked)


async def test_the_same_command_again_asks_nothing_and_changes_nothing(tmp_path: Path) -> None:
    await run(order(20), tmp_path / "run")
    before = bytes_of(tmp_path / "run")
    voice, coin = Voice(), Coin()
    report = await run(order(20, voice, coin), tmp_path / "run")
    assert (voice.asked, coin.judged, report.new) == ([], 0, 0)
    assert bytes_of(tmp_path / "run") == before


async def test_more_walks_later_only_add(tmp_path: Path) -> None:
    voice = Voice()
    await run(replace(order(20, voice), walks=8), tmp_path / "run")
    report = await run(order(20, voice), tmp_path / "run")
    await run(order(20), tmp_path / "whole")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "whole")
    assert report.total.calls == len(voice.asked)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stop_after=st.lists(st.integers(0, 12), min_size=1, max_size=4))
async def test_a_run_stopped_and_continued_is_the_unbroken_run(
    tmp_path_factory: pytest.TempPathFactory, stop_after: list[int]
) -> None:
    folder, voice = tmp_path_factory.mktemp("run"), Voice()
    for walks in stop_after:
        halt, seen = Halt(no_sleep), Counter[str]()

        def watch(
            event: Event, halt: Halt = halt, seen: Counter[str] = seen, n: int = walks
        ) -> None:
            seen["walks"] += isinstance(event, WalkEnded)
            if seen["walks"] >= n:
                halt.stop()

        report = await forge(order(20, voice), folder / "run", watch, halt)
        assert report.accepted + report.rejected + report.pending == 20
    report = await run(order(20, voice), folder / "run")
    assert report.pending == 0
    await run(order(20), folder / "whole")
    assert bytes_of(folder / "run") == bytes_of(folder / "whole")
    assert report.total.calls == len(voice.asked)


@settings(max_examples=15)
@given(tear=st.floats(0, 1), keep_walks=st.floats(0, 1))
async def test_logs_torn_anywhere_lead_to_the_same_corpus(
    tmp_path_factory: pytest.TempPathFactory, tear: float, keep_walks: float
) -> None:
    folder = tmp_path_factory.mktemp("run")
    await run(order(10), folder)
    whole = bytes_of(folder)
    walks, calls = folder / "walks.jsonl", folder / "calls.jsonl"
    walks.write_bytes(walks.read_bytes()[: int(walks.stat().st_size * keep_walks)])
    # A walk is written after its calls are on disk, so no kill can tear those off.
    needed = 0
    for line in walks.read_bytes().split(b"\n")[:-1]:
        for attempt in json.loads(line)["attempts"]:
            needed = max(needed, *attempt["calls"].values(), 0)
    data = calls.read_bytes()
    least = data.find(b"\n", needed) + 1 if needed else 0
    calls.write_bytes(data[: least + int((len(data) - least) * tear)])
    said: list[str] = []
    report = await run(order(10), folder, lambda event: said.append(str(event)))
    assert bytes_of(folder) == whole
    assert report.total.calls == data.count(b'"kind":"chat"')


def unreliable(rates: dict[str, int]) -> Voice:
    """Fails in each way so many times of a hundred, drawn anew each time it is asked."""
    times: Counter[str] = Counter()

    def say(messages: Sequence[Message], params: Params) -> str:
        asked = f"{messages[-1].content} {params.seed}"
        times[asked] += 1
        die = hashed(asked, str(times[asked])) % 100
        for kind, rate in rates.items():
            if die < rate:
                match kind:
                    case "limit":
                        raise RateLimited("slow down", retry_after=1.0)
                    case "transient":
                        raise TransientModelError("dropped")
                    case "garbage":
                        return "?"
            die -= rate
        return echo(messages, params)

    return Voice(say)


@settings(max_examples=12)
@given(st.integers(0, 45), st.integers(0, 30), st.integers(0, 25), st.integers(1, 9))
async def test_no_walk_is_lost_under_any_mix_of_failures(
    tmp_path_factory: pytest.TempPathFactory,
    limit: int,
    transient: int,
    garbage: int,
    concurrency: int,
) -> None:
    folder = tmp_path_factory.mktemp("run")
    rates = {"limit": limit, "transient": transient, "garbage": garbage}
    asked = replace(order(20, unreliable(rates)), concurrency=concurrency)
    report = await run(asked, folder)
    assert report.accepted + report.rejected + report.failed == 20
    assert sum(ending.count for ending in report.endings) == report.rejected + report.failed


async def test_a_rate_limit_uses_up_no_attempt_and_changes_no_byte(tmp_path: Path) -> None:
    report = await run(order(20, unreliable({"limit": 60})), tmp_path / "limited")
    await run(order(20), tmp_path / "free")
    assert bytes_of(tmp_path / "limited") == bytes_of(tmp_path / "free")
    assert report.failed == 0


async def test_a_walk_that_failed_is_walked_again_and_its_calls_are_not(tmp_path: Path) -> None:
    down = True

    def say(messages: Sequence[Message], params: Params) -> str:
        asked = messages[-1].content
        if down and "Ask about" in asked and hashed(asked) % 2:
            raise TransientModelError("overloaded")
        return echo(messages, params)

    voice = Voice(say)
    broken = await run(order(6, voice), tmp_path / "run")
    failed = [ending for ending in broken.endings if ending.outcome == "failed"]
    assert 0 < broken.failed < 6
    assert [(each.node, each.reason) for each in failed] == [
        ("ask/summary", "the model kept failing")
    ]
    down = False
    report = await run(order(6, voice), tmp_path / "run")
    await run(order(6), tmp_path / "whole")
    assert (report.failed, report.reused) == (0, broken.failed)
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "whole")


async def test_a_fatal_error_stops_the_run_and_keeps_what_was_done(tmp_path: Path) -> None:
    replies = 0

    def say(messages: Sequence[Message], params: Params) -> str:
        nonlocal replies
        replies += 1
        if replies > 25:
            raise FatalModelError("no credit left; top it up")
        return echo(messages, params)

    with pytest.raises(FatalModelError, match="no credit left; top it up"):
        await run(order(20, Voice(say)), tmp_path / "run")
    manifest = load_manifest(tmp_path / "run")
    ended = ended_walks(tmp_path / "run", manifest.fingerprint)
    assert 0 < len(ended) < 20
    assert (tmp_path / "run" / "report.md").exists()
    voice = Voice()
    report = await run(order(20, voice), tmp_path / "run")
    await run(order(20), tmp_path / "whole")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "whole")
    assert len(voice.asked) + 25 == report.total.calls


async def test_a_disk_that_fills_is_said_as_such_and_room_lets_the_run_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = 0
    really = os.pwrite

    def filling(descriptor: int, data: bytes, offset: int) -> int:
        nonlocal written
        written += 1
        if written > 30:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return really(descriptor, data, offset)

    def full(path: Path, write: object) -> None:
        if written > 30:
            raise RunError(f"{path}: cannot be written, which says nothing of the calls")

    with monkeypatch.context() as patched:
        patched.setattr("dataforge.run.log.os.pwrite", filling)
        patched.setattr("dataforge.corpus.store.replace_file", full)
        says = r"(calls|walks)\.jsonl: cannot be written \(No space left on device\).*Make room"
        with pytest.raises(RunError, match=says):
            await run(order(20), tmp_path / "run")
    await run(order(20), tmp_path / "run")
    await run(order(20), tmp_path / "whole")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "whole")


async def test_seeds_that_change_under_a_run_stop_it_and_what_was_asked_is_kept(
    tmp_path: Path,
) -> None:
    path = tmp_path / "seeds.jsonl"
    text = "".join(
        json.dumps({"text": f"passage number {n} about river {n}"}) + "\n" for n in range(40)
    )
    path.write_text(text)
    voice = Voice()

    def say(messages: Sequence[Message], params: Params) -> str:
        if len(voice.asked) == 5:
            path.write_text(text.replace("river", "RIVER"))
        return echo(messages, params)

    voice.say = say
    with pytest.raises(InputError, match="is no longer where it was"):
        await run(replace(order(40, voice), seeds=read_seeds(path).seeds), tmp_path / "run")
    path.write_text(text)
    again = Voice()
    await run(replace(order(40, again), seeds=read_seeds(path).seeds), tmp_path / "run")
    whole = Voice()
    await run(replace(order(40, whole), seeds=read_seeds(path).seeds), tmp_path / "whole")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "whole")
    assert len(voice.asked) + len(again.asked) == len(whole.asked)


async def test_half_a_character_in_a_sample_stops_nothing(tmp_path: Path) -> None:
    @node
    async def odd(seen: Passed) -> Chat:
        turns = [("user", f"{seen.instruction}\ud800"), ("assistant", seen.answer)]
        return Chat(messages=[{"role": role, "content": text} for role, text in turns])

    actions = [*NODES[:-1], odd.renamed("sample/chat")]
    graph = Graph.build("small", actions, "seed/gate", "sample/chat")
    report = await run(replace(order(10), graph=graph), tmp_path)
    assert (report.failed, report.pending) == (0, 0)
    assert report.accepted


async def test_a_passage_that_stands_there_twice_is_walked_once(tmp_path: Path) -> None:
    doubled = replace(
        order(3),
        seeds=SeedStore.of(
            "",
            [
                Seed("one", "A passage about the river Ob"),
                Seed("two", "another passage about the river Ob"),
                Seed("three", "a  passage about\nthe River Ob "),
            ],
        ),
    )
    report = await run(doubled, tmp_path)
    assert ("seeds", "same passage as an earlier seed", 1) in [
        (ending.node, ending.reason, ending.count) for ending in report.endings
    ]
    assert '"detail":"same passage as seed one"' in (tmp_path / "walks.jsonl").read_text()


async def test_a_seed_the_source_turns_away_is_counted_under_it(tmp_path: Path) -> None:
    short = replace(
        order(2),
        seeds=SeedStore.of("", [Seed("short", "too short"), Seed("fine", "long enough " * 9)]),
    )
    report = await run(short, tmp_path)
    assert report.accepted == 1
    (ending,) = report.endings
    assert (ending.outcome, ending.node) == ("rejected", "seed/gate")
    assert ending.reason == "passage is not str of at least 20 characters"


def players(writer: str, answerer: str, judge: str, coin: Coin | None = None) -> dict[str, Role]:
    return {
        "writer": OpenModel.of("writer-spec", Voice(weights=writer)),
        "answerer": OpenModel.of("answerer-spec", Voice(weights=answerer)),
        "judge": OpenJudge("code:coin", coin or Coin(), judge, "1"),
    }


async def test_a_judge_of_its_own_weights_is_refused_before_any_call(tmp_path: Path) -> None:
    shared = replace(order(2), players=players("w", "same", "same"))
    says = r"judge judges what answerer wrote, and both are same.*--allow-shared-weights"
    with pytest.raises(SharedWeights, match=says):
        await run(shared, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    report = await run(replace(shared, allow_shared_weights=True), tmp_path / "run")
    assert report.overrides == (
        "shared weights: judge judges what answerer wrote, and both are same",
    )


async def test_a_judge_may_share_weights_with_whom_it_does_not_judge(tmp_path: Path) -> None:
    await run(replace(order(2), players=players("same", "a", "same")), tmp_path)


def changed(graph_node: str) -> Graph:
    """The graph of the scene with one node changed."""
    nodes = [n.weighted(2.0) if n.name == graph_node else n for n in NODES]
    return Graph.build("small", nodes, "seed/gate", "sample/chat")


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (replace(order(6), graph=changed("transform/rap")), "nodes changed: transform/rap"),
        (replace(order(6), run_seed=5), "run seed: was 0, now 5"),
        (
            replace(order(6), players={**order(6).players, **players("voice", "b", "coin")}),
            r"role answerer: was voice, now answerer-spec \(b\)",
        ),
        (order(7), r"seeds: were 6 of seeds.jsonl, now 7 of seeds.jsonl with other ids"),
        (
            replace(
                order(6),
                players={**order(6).players, "judge": OpenJudge("code:coin", Coin(), "coin", "2")},
            ),
            "role judge: the code of code:coin changed",
        ),
    ],
)
async def test_a_run_is_not_continued_as_something_else(
    tmp_path: Path, other: Order, says: str
) -> None:
    await run(order(6), tmp_path / "run")
    before = bytes_of(tmp_path / "run")
    with pytest.raises(RunMismatch, match=rf"(?s){says}.*--out, or --accept-changes"):
        await run(other, tmp_path / "run")
    assert bytes_of(tmp_path / "run") == before
    report = await run(replace(other, accept_changes=True), tmp_path / "run")
    await run(other, tmp_path / "afresh")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "afresh")
    assert report.changes


async def test_accepted_changes_repeat_no_call_that_stays_the_same(tmp_path: Path) -> None:
    await run(order(6), tmp_path)
    voice = Voice()
    heavier = replace(order(6, voice), graph=changed("answered"), accept_changes=True)
    report = await run(heavier, tmp_path)
    assert voice.asked == []
    assert report.reused > 0


async def test_a_folder_of_other_things_is_not_made_a_run(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("chapter one")
    with pytest.raises(RunError, match="holds files and no"):
        await run(order(2), tmp_path)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (replace(order(2), players={}), "asks for a model 'answerer': give it --model"),
        (
            replace(order(2), players={**order(2).players, "writer": order(2).players["judge"]}),
            "'writer' writes text, and 'code:coin' can only judge",
        ),
        (
            replace(order(2), graph=Graph.build("short", NODES[:4], "seed/gate", "ask/summary")),
            "graph short does not promise `messages`",
        ),
    ],
)
async def test_an_order_that_cannot_be_filled_is_refused(
    tmp_path: Path, other: Order, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        await run(other, tmp_path / "run")
    assert not (tmp_path / "run").exists()


async def test_no_more_walks_are_in_flight_than_asked_for(tmp_path: Path) -> None:
    voice = Voice(limit=100)
    await run(replace(order(40, voice), concurrency=3), tmp_path)
    assert voice.most_at_once <= 3


async def test_a_call_torn_from_under_a_walk_is_said(tmp_path: Path) -> None:
    await run(order(6), tmp_path)
    (tmp_path / "calls.jsonl").write_bytes(b"")
    with pytest.raises(RunError, match=r"calls.jsonl: no whole line at byte \d+"):
        await run(order(6), tmp_path)


@pytest.mark.parametrize("name", ["calls.jsonl", "walks.jsonl"])
async def test_a_line_of_another_kind_is_said(tmp_path: Path, name: str) -> None:
    await run(order(2), tmp_path)
    with (tmp_path / name).open("a") as file:
        file.write('{"some": "thing else"}\n')
    with pytest.raises(RunError, match=rf"{name}: the line at byte \d+ is none of this log"):
        await run(order(2), tmp_path)
