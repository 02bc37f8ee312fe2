"""`dataforge pack`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from dataforge.commands.app import main
from dataforge.commands.pack import pack
from dataforge.corpus.export import export
from dataforge.corpus.record import Call, Sample, Turn
from dataforge.corpus.store import write_calls, write_samples
from dataforge.errors import InputError, PackingError, UsageError
from dataforge.packing.shard import Shards
from dataforge.packing.tokenizer import open_tokenizer
from dataforge.packing.tokens import NO_LOSS
from tests.tiny import tiny_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_tokenizer(tmp_path_factory.mktemp("tokenizer")))


def chats(path: Path, *replies: str) -> Path:
    lines = [
        json.dumps(
            {
                "id": f"chat-{number}",
                "messages": [
                    {"role": "user", "content": "What did the cat do?"},
                    {"role": "assistant", "content": reply},
                ],
            }
        )
        for number, reply in enumerate(replies)
    ]
    path.write_text("\n".join(lines))
    return path


def test_a_file_of_chats_becomes_shards_beside_it(tmp_path: Path, tokenizer: str) -> None:
    source = chats(tmp_path / "chats.jsonl", "It sat.", "It ran to the door." * 90, "It slept.", "")
    result = CliRunner().invoke(
        main, ["pack", str(source), "--tokenizer", tokenizer, "--capacity", "256"]
    )
    assert result.exit_code == 0, result.output
    assert "2 samples in 1 rows of at most 256 tokens" in result.output
    assert "left out: longer than a row: 1\n" in result.output
    assert "left out: empty answer: 1\n" in result.output
    assert sorted(Shards(tmp_path / "chats-shards")[0].sample_ids) == ["chat-0", "chat-2"]


def test_the_shards_of_a_run_lie_in_it(tmp_path: Path, tokenizer: str) -> None:
    turns = (Turn("user", "What did the cat do?"), Turn("assistant", "It sat."))
    sample = Sample(id="s", seed_id="1", walk=0, path=(), facts={}, messages=turns, score=None)
    write_samples(tmp_path / "corpus.parquet", [sample])
    with pytest.raises(InputError, match=r"calls\.parquet is missing.*--no-calls"):
        pack(tmp_path, tokenizer=tokenizer)
    packed = pack(tmp_path, tokenizer=tokenizer, calls=False)
    assert packed.out == tmp_path / "shards" and packed.samples == 1


@pytest.fixture
def taught(tmp_path: Path) -> Path:
    """A run with a sample of two answers, a call that was shown an example, and a cut one."""
    talk = [Turn("user", "What?"), Turn("assistant", "One."), Turn("user", "And?")]
    shown = [talk[0], Turn("assistant", "An example.", 0), talk[2]]
    sample = Sample(
        id="s",
        seed_id="1",
        walk=0,
        path=(),
        facts={},
        messages=(*talk, Turn("assistant", "Two.")),
        score=None,
    )
    calls = [
        Call(
            id=f"s-{finish}",
            sample_id="s",
            node="ask/it",
            kind="ask",
            step="ask/it#0",
            attempt=1,
            superseded=False,
            finish=finish,
            messages=(*shown, Turn("assistant", reply)),
            weights="w",
        )
        for finish, reply in [("stop", "The reply."), ("length", "A reply cut in the")]
    ]
    write_samples(tmp_path / "corpus.parquet", [sample])
    write_calls(tmp_path / "calls.parquet", calls)
    return tmp_path


@pytest.mark.parametrize("way", ["", "out.jsonl", "out.parquet"])
def test_a_call_is_learned_for_its_reply_and_a_sample_for_all_its_answers(
    taught: Path, tokenizer: str, way: str
) -> None:
    if way:
        export(taught / "corpus.parquet", taught / "calls.parquet", taught / way)
    packed = pack(taught / way, tokenizer=tokenizer)
    learned: dict[str, str] = {}
    (row,) = Shards(packed.out)
    at = 0
    for name, length in zip(row.sample_ids, row.seq_lengths, strict=True):
        labels = row.labels[at : at + length]
        spoken = [int(label) for label in labels if label != NO_LOSS]
        learned[name] = open_tokenizer(tokenizer).decode(spoken)
        at += length
    assert learned == {"s": "One.Two.", "s-stop": "The reply."}
    # An export leaves cut replies out by itself.
    assert packed.refused == ({} if way else {"reply cut at max_tokens": 1})


def test_packing_again_gives_the_same_bytes(tmp_path: Path, tokenizer: str) -> None:
    source = chats(tmp_path / "chats.jsonl", *(f"It sat {'down ' * n}." for n in range(40)))
    made = []
    for _ in range(2):
        out = pack(source, tokenizer=tokenizer, capacity=128).out
        made.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert made[0] == made[1]


def test_the_seed_orders_the_rows(tmp_path: Path, tokenizer: str) -> None:
    source = chats(tmp_path / "chats.jsonl", *(f"It sat {'down ' * n}." for n in range(40)))
    orders = []
    for seed in (0, 1):
        packed = pack(
            source, tokenizer=tokenizer, capacity=128, seed=seed, out=tmp_path / f"{seed}"
        )
        orders.append([row.sample_ids for row in Shards(packed.out)])
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])


def test_nothing_to_pack_fails_and_leaves_nothing(tmp_path: Path, tokenizer: str) -> None:
    source = chats(tmp_path / "chats.jsonl", "It sat on the mat, all day long.", "")
    with pytest.raises(
        PackingError, match=r"not one sample.*longer than a row: 1.*empty answer: 1"
    ):
        pack(source, tokenizer=tokenizer, capacity=45)
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(PackingError, match="there are no samples to pack"):
        pack(tmp_path / "empty.jsonl", tokenizer=tokenizer)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chats.jsonl", "empty.jsonl"]


def test_bad_input_is_one_line_and_an_exit_code(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["pack", str(tmp_path / "absent.jsonl")])
    assert result.exit_code == InputError.exit_code
    assert result.output.startswith("error: ") and result.output.count("\n") == 1


@pytest.mark.parametrize(("capacity", "seed"), [(1, 0), (512, -1)])
def test_settings_that_mean_nothing_are_refused(tmp_path: Path, capacity: int, seed: int) -> None:
    with pytest.raises(UsageError):
        pack(tmp_path, capacity=capacity, seed=seed)
