"""`dataforge run` from files to corpus, and one clear line for whatever cannot be."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dataforge.corpus.store import read_samples
from tests.commands.small import asked, dataforge, make_library


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return make_library(tmp_path / "lib")


def test_a_run_makes_a_corpus_and_says_where(library: Path, tmp_path: Path) -> None:
    done = dataforge("run", "small", "--library", library)
    assert done.exit_code == 0, done.output
    samples = list(read_samples(tmp_path / "runs" / "small" / "corpus.parquet"))
    assert samples
    for part in ("accepted", "rejected", "tokens/s", "runs/small/corpus.parquet", "report.md"):
        assert part in done.output
    assert f"reused 0, new {asked(library)}" in done.output


def test_the_command_that_comes_next_can_be_pasted(library: Path) -> None:
    done = dataforge("run", "small", "--library", library, "--out", "my run's")
    following = next(line for line in done.output.splitlines() if line.startswith("next: "))
    show = shlex.split(following.removeprefix("next: "))
    assert show[show.index("--run") + 1] == "my run's"
    assert show[-1] == "my run's"


def test_the_same_command_again_repeats_no_call(library: Path) -> None:
    dataforge("run", "small", "--library", library, "--walks", "5")
    before = asked(library)
    again = dataforge("run", "small", "--library", library, "--walks", "5")
    assert again.exit_code == 0
    assert asked(library) == before
    assert "reused 0, new 0" in again.output
    assert "5 of 5 walks ended before" in again.output


def test_the_users_own_seeds_and_field_are_read_and_bad_lines_listed(
    library: Path, tmp_path: Path
) -> None:
    lines = [json.dumps({"body": f"a page about lake {n}, long enough"}) for n in range(5)]
    pages = tmp_path / "pages.jsonl"
    pages.write_text("\n".join([*lines, "{broken", json.dumps({"title": "no body"})]) + "\n")
    done = dataforge("run", "small", "--library", library, "--seeds", pages, "--field", "body")
    assert done.exit_code == 0, done.output
    assert "2 seeds could not be used" in done.output
    assert "pages.jsonl:6: " in done.output
    report = json.loads((tmp_path / "runs" / "small" / "report.json").read_text())
    assert report["walks"] == 5
    assert len(report["skipped_seeds"]) == 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["run", "smal"], "small"),
        (["run", "small", "--seeds", "nowhere.jsonl"], "nowhere.jsonl"),
        (["run", "small", "--model", "answrer=embedded"], "did you mean 'answerer'? Its roles: "),
        (["run", "small", "--model", "answerer"], "write ROLE=SPEC"),
        (["run", "small", "--model", "answerer=no-such-model"], "no-such-model"),
        (["run", "small", "--model", "writer=no-such-model"], "no-such-model"),
        (["run", "small", "--model", "judge=code:none"], "judges/none"),
        (["run", "small", "--model", "writer=code:coin"], "can only judge"),
        (["run", "small", "--walks", "3", "--per-seed", "2"], "give one of them"),
        (["run", "small", "--walks", "0"], "0"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    library: Path, tmp_path: Path, args: list[str], says: str
) -> None:
    done = dataforge(*args, "--library", library)
    assert done.exit_code == 2, done.output
    assert says in done.output
    assert "Traceback" not in done.output
    assert not (tmp_path / "runs").exists()
    assert asked(library) == 0


def test_shared_weights_are_refused_before_the_first_call(library: Path) -> None:
    (library / "judges" / "coin.py").write_text(
        (library / "judges" / "coin.py").read_text().replace('"coin"', '"served:voice"')
    )
    refused = dataforge("run", "small", "--library", library)
    assert refused.exit_code == 2
    assert "judge judges what answerer wrote" in refused.output
    assert asked(library) == 0
    allowed = dataforge("run", "small", "--library", library, "--allow-shared-weights")
    assert allowed.exit_code == 0, allowed.output


def test_a_changed_node_is_named_and_the_run_not_continued(library: Path) -> None:
    dataforge("run", "small", "--library", library)
    nodes = library / "nodes" / "transform.toml"
    nodes.write_text(nodes.read_text().replace('"News"', '"A report"'))
    refused = dataforge("run", "small", "--library", library)
    assert refused.exit_code == 2
    assert "nodes changed: transform/news" in refused.output
    before = asked(library)
    done = dataforge("run", "small", "--library", library, "--accept-changes")
    assert done.exit_code == 0, done.output
    assert 0 < asked(library) - before < before


def test_a_run_without_any_accepted_walk_fails_with_the_table(library: Path) -> None:
    voice = library / "voice.py"
    voice.write_text(voice.read_text().replace('return f"', 'return "?" if "Rap" or 1 else f"'))
    done = dataforge("run", "small", "--library", library)
    assert done.exit_code == 1
    assert "error: no walk was accepted" in done.output
    assert "text is not str of at least 5 characters" in done.output


def test_a_budget_stops_a_run_and_the_same_command_goes_on(library: Path) -> None:
    command = ("run", "small", "--library", library, "--max-tokens", "1")
    done = dataforge(*command)
    assert done.exit_code == 0, done.output
    assert "stopped: " in done.output
    assert "tokens used of the 1 allowed" in done.output
    whole = dataforge("run", "small", "--library", library)
    assert whole.exit_code == 0
    assert "stopped" not in whole.output


@pytest.mark.parametrize("span", ["0s", "soon", "5", "-1m", "1.5.2h"])
def test_a_span_that_is_none_says_how_to_write_one(library: Path, span: str) -> None:
    done = dataforge("run", "small", "--library", library, "--time", span)
    assert done.exit_code == 2
    assert "is no span of time; write 90s, 15m, 2h or 1d" in done.output


def test_a_model_that_cannot_serve_stops_the_run_with_the_remedy(library: Path) -> None:
    voice = library / "voice.py"
    voice.write_text(
        "from dataforge.errors import FatalModelError\n"
        "def reply(messages, params):\n"
        "    raise FatalModelError('no credit left; top it up')\n"
    )
    done = dataforge("run", "small", "--library", library)
    assert done.exit_code == 1
    assert "error: no credit left; top it up" in done.output


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_run_cleanly_and_says_how_to_go_on(
    library: Path, stop: signal.Signals
) -> None:
    voice = library / "voice.py"
    # Once `held` is there, replies wait until it is gone, so that the signal meets calls in flight.
    voice.write_text(
        voice.read_text()
        .replace("def reply", "async def reply")
        .replace(
            "    return f",
            "    import asyncio\n"
            "    while (Path(__file__).parent / 'held').exists():\n"
            "        await asyncio.sleep(0.01)\n"
            "    return f",
        )
    )
    (library / "held").write_text("")
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, root / "cli.py", "run", "small", "--library", library],
        env={**os.environ, "PYTHONPATH": str(root)},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not asked(library) and time.monotonic() < deadline:
        assert process.poll() is None
    process.send_signal(stop)
    assert process.stderr is not None
    said = ""
    while "stopping once" not in said:
        said += process.stderr.readline()
    (library / "held").unlink()
    said += process.stderr.read()
    process.stderr.close()
    assert process.wait(120) == 130
    assert "walks to go; what was finished is on disk. To continue:" in said
    assert "run small --library" in said
    chats = Path("runs/small/calls.jsonl").read_text().count('"kind":"chat"')
    assert chats == asked(library)
    done = dataforge("run", "small", "--library", library)
    assert done.exit_code == 0, done.output


def test_help_explains_resuming(library: Path) -> None:
    assert "repeats no" in dataforge("run", "--help").output
