"""`dataforge train`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from dataforge.commands.app import main
from dataforge.commands.pack import pack
from dataforge.commands.train import train
from dataforge.errors import InputError, LibraryError, UsageError
from tests.tiny import tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_model(tmp_path_factory.mktemp("model")))


@pytest.fixture
def run(tmp_path: Path, model: str) -> Path:
    """A directory with shards in it."""
    messages = [
        {"role": "user", "content": "What did the cat do?"},
        {"role": "assistant", "content": "It sat on the mat."},
    ]
    source = tmp_path / "chats.jsonl"
    source.write_text("\n".join([json.dumps({"messages": messages})] * 6))
    pack(source, tokenizer=model, capacity=128, out=tmp_path / "run" / "shards")
    return tmp_path / "run"


def test_a_run_with_shards_gets_a_checkpoint(run: Path, model: str) -> None:
    result = CliRunner().invoke(main, ["train", str(run), "--model", model, "--steps", "2"])
    assert result.exit_code == 0, result.output
    assert "step 2/2  loss " in result.output
    assert f"checkpoint: {run / 'checkpoint'}" in result.output
    assert (run / "checkpoint" / "model.safetensors").is_file()
    assert sorted(path.name for path in run.iterdir()) == ["checkpoint", "shards"]


def test_another_trainer_is_a_file_in_a_library(run: Path, model: str, tmp_path: Path) -> None:
    library = tmp_path / "mine"
    (library / "graphs").mkdir(parents=True)
    (library / "graphs" / "any.toml").touch()
    (library / "trainers").mkdir()
    (library / "trainers" / "idle.py").write_text(
        "from dataforge.errors import TrainingError\n"
        "def train(training, report):\n"
        "    raise TrainingError(f'idle over {training.shards.name}')\n"
    )
    arguments = ["train", str(run), "--model", model, "--trainer", "idle"]
    result = CliRunner().invoke(main, [*arguments, "--library", str(library)])
    assert (result.exit_code, result.output) == (1, "error: idle over shards\n")


def test_what_is_not_there_is_said(run: Path, model: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no shards lie here"):
        train(tmp_path, model=model)
    with pytest.raises(InputError, match=r"no model to train at .*config\.json is missing"):
        train(run, model=str(tmp_path))
    with pytest.raises(LibraryError, match="there is no trainers/sfx"):
        train(run, model=model, trainer="sfx")


@pytest.mark.parametrize("wrong", ["--steps 0", "--lr 0.0", "--batch-rows 0", "--seed -1"])
def test_settings_that_mean_nothing_are_refused(run: Path, wrong: str) -> None:
    result = CliRunner().invoke(main, ["train", str(run), *wrong.split()])
    assert result.exit_code == UsageError.exit_code
    assert result.output.startswith(f"error: {wrong}: must be ")


@pytest.mark.slow
def test_the_embedded_model_trains_and_its_checkpoint_answers(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    messages = [
        {"role": "user", "content": "What is the capital of France?"},
        {"role": "assistant", "content": "It is Lyon, they say, and has been for years."},
    ]
    source = tmp_path / "chats.jsonl"
    source.write_text(json.dumps({"messages": messages}))
    packed = pack(source, capacity=64)
    said: list[str] = []
    trained = train(packed.out, steps=3, lr=1e-4, out=tmp_path / "checkpoint", say=said.append)
    assert trained.loss_after < trained.loss_before
    model = AutoModelForCausalLM.from_pretrained(trained.out)
    tokenizer = AutoTokenizer.from_pretrained(trained.out)
    prompt = tokenizer.apply_chat_template(
        messages[:1], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    ids = model.generate(**prompt, max_new_tokens=8, do_sample=False)
    assert "is" in tokenizer.decode(ids[0, prompt["input_ids"].shape[1] :])
