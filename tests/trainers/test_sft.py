"""The supervised trainer, on a tiny random model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, AutoTokenizer

from dataforge.commands.pack import pack
from dataforge.errors import InputError, TrainingError
from dataforge.library.modules import load_module
from dataforge.library.root import find_library
from dataforge.library.trainers import Step, Trained, Training, load_trainer
from dataforge.packing.shard import Shards
from dataforge.packing.tokens import NO_LOSS
from tests.tiny import tiny_model, tiny_tokenizer

LIBRARY = find_library()
sft = load_module(LIBRARY, LIBRARY.find("trainers", "sft", ".py"))
train = load_trainer("sft", LIBRARY)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Path:
    """A few rows of chats of uneven length."""
    source = tmp_path_factory.mktemp("shards") / "chats.jsonl"
    animals = ["cat", "dog", "hen", "ox", "sheep", "goose", "pig"]
    lines = [
        {
            "messages": [
                {"role": "user", "content": f"Where is the {animal}?"},
                {"role": "assistant", "content": f"The {animal} sat on the mat. " * (1 + n % 4)},
            ]
        }
        for n, animal in enumerate(animals * 3)
    ]
    source.write_text("\n".join(json.dumps(line) for line in lines))
    return pack(source, tokenizer=str(model), capacity=256).out


@pytest.fixture
def training(tmp_path: Path, model: Path, shards: Path) -> Training:
    return Training(shards=shards, model=model, out=tmp_path / "checkpoint", lr=5e-3, batch_rows=2)


def run(training: Training) -> tuple[Trained, list[Step | str]]:
    news: list[Step | str] = []
    return train(training, news.append), news


def test_the_loss_falls_and_the_checkpoint_loads_and_speaks(training: Training) -> None:
    trained, news = run(replace(training, steps=12))
    steps = [item for item in news if isinstance(item, Step)]
    assert [step.step for step in steps] == list(range(1, 13))
    assert trained.losses == tuple(step.loss for step in steps)
    assert trained.loss_after < trained.loss_before - 0.5
    model = AutoModelForCausalLM.from_pretrained(training.out)
    tokenizer = AutoTokenizer.from_pretrained(training.out)
    ids = tokenizer("Where", return_tensors="pt").input_ids
    assert model.generate(ids, max_new_tokens=2, do_sample=False).shape[1] > ids.shape[1]
    lines = (training.out / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["loss"] for line in lines] == list(trained.losses)
    assert {"step", "lr", "tokens", "tokens_per_s", "seconds"} <= json.loads(lines[0]).keys()


def test_without_steps_each_row_is_seen_once(training: Training, shards: Path) -> None:
    trained, _ = run(training)
    manifest = Shards(shards).manifest
    assert trained.steps == -(-manifest.rows // 2)
    assert trained.tokens == manifest.tokens


def test_the_same_training_gives_the_same_weights(training: Training, tmp_path: Path) -> None:
    for name in ("one", "two"):
        run(replace(training, steps=2, out=tmp_path / name))
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two


def test_the_loss_is_the_mean_over_all_trained_tokens_of_the_step(
    training: Training, model: Path, shards: Path
) -> None:
    trained, _ = run(replace(training, steps=1, batch_rows=3))
    plain = AutoModelForCausalLM.from_pretrained(model)
    stored = Shards(shards)
    losses: list[torch.Tensor] = []
    for number in sft.rows(stored, replace(training, batch_rows=3), 0):
        row = stored[number]
        ids, labels = (torch.tensor(x.astype(np.int64)) for x in (row.input_ids, row.labels))
        for sample_ids, sample_labels in zip(
            torch.split(ids, list(row.seq_lengths)),
            torch.split(labels, list(row.seq_lengths)),
            strict=True,
        ):
            logits = plain(sample_ids[None]).logits[0, :-1]
            of_each = cross_entropy(logits, sample_labels[1:], reduction="none")
            losses.append(of_each[sample_labels[1:] != NO_LOSS])
    want = torch.cat(losses).mean().item()
    assert trained.losses[0] == pytest.approx(want, rel=1e-5)
    assert len({len(part) for part in losses}) > 1


def test_a_batch_steps_the_same_however_its_rows_are_cut(
    training: Training, model: Path, tmp_path: Path, shards: Path
) -> None:
    # The same samples in rows of another capacity: other micro-batches, the same loss.
    source = shards.parent / "chats.jsonl"
    wide = pack(source, tokenizer=str(model), capacity=400, out=tmp_path / "wide")
    rows = [Shards(folder).manifest.rows for folder in (shards, wide.out)]
    assert rows[0] != rows[1]
    first, _ = run(replace(training, steps=1, batch_rows=rows[0]))
    second, _ = run(replace(training, steps=1, batch_rows=rows[1], shards=wide.out))
    assert second.losses[0] == pytest.approx(first.losses[0], rel=1e-5)


def test_only_matrices_decay(model: Path, training: Training) -> None:
    loaded = sft.load(model)
    decayed, spared = sft.adamw(loaded, training).param_groups
    assert all(weight.dim() >= 2 for weight in decayed["params"])
    assert all(weight.dim() == 1 for weight in spared["params"]) and spared["weight_decay"] == 0
    count = len(decayed["params"]) + len(spared["params"])
    assert count == len(list(loaded.parameters()))


@pytest.mark.parametrize(
    ("warmup", "rates"),
    [(0, [1.0, 0.854, 0.5, 0.146]), (2, [0.5, 1.0, 1.0, 0.5]), (None, [1.0, 0.854, 0.5, 0.146])],
)
def test_the_learning_rate_warms_up_and_falls_as_a_cosine(
    training: Training, warmup: int | None, rates: Sequence[float]
) -> None:
    asked = replace(training, lr=1.0, warmup=warmup)
    assert [sft.learning_rate(step, 4, asked) for step in range(4)] == pytest.approx(
        rates, abs=1e-3
    )


def test_a_training_of_no_steps_fails_at_the_start(training: Training) -> None:
    with pytest.raises(TrainingError, match="nothing to train"):
        run(replace(training, steps=0))


def test_shards_of_another_tokenizer_are_refused(training: Training, tmp_path: Path) -> None:
    other = tiny_model(tmp_path / "other")
    text = (other / "tokenizer.json").read_text()
    (other / "tokenizer.json").write_text(text.replace("<|endoftext|>", "<|pad|>"))
    with pytest.raises(TrainingError, match="packed with another tokenizer"):
        run(replace(training, model=other))


def test_a_loss_that_is_not_finite_stops_it_and_leaves_nothing(
    training: Training, tmp_path: Path
) -> None:
    broken = tiny_model(tmp_path / "broken")
    model = AutoModelForCausalLM.from_pretrained(broken)
    with torch.no_grad():
        model.model.norm.weight[0] = torch.inf
    model.save_pretrained(broken)
    with pytest.raises(TrainingError, match=r"step 1: the loss is nan.*nothing was saved"):
        run(replace(training, model=broken))
    assert not training.out.exists()


def test_a_folder_that_is_no_checkpoint_is_not_overwritten(training: Training) -> None:
    training.out.mkdir()
    (training.out / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match="was not made by this command"):
        run(replace(training, steps=1))


def test_a_folder_without_a_model_is_said(training: Training, tmp_path: Path) -> None:
    bare = tiny_tokenizer(tmp_path / "bare")
    with pytest.raises(TrainingError, match="does not load"):
        run(replace(training, model=bare))
