"""`run --preview`: walks made for good and shown, the whole estimated, nothing paid twice."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dataforge.corpus.store import read_samples
from tests.commands.small import asked, dataforge, make_library


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return make_library(tmp_path / "lib", seeds=24)


def tables(folder: str) -> tuple[bytes, bytes]:
    run = Path("runs") / folder
    return (run / "corpus.parquet").read_bytes(), (run / "calls.parquet").read_bytes()


@pytest.mark.parametrize(
    "chosen",
    [
        ["--walks", "20"],
        [],
        ["--per-seed", "2"],
        ["--walks", "20", "--seed", "5"],
        ["--walks", "20", "--policy", "cover"],
        ["--walks", "20", "--policy", "paths"],
        ["--accept", "6"],
        ["--walks", "20", "--concurrency", "1"],
    ],
)
def test_the_whole_run_after_a_preview_is_the_run_without_one_and_asks_no_more(
    library: Path, chosen: list[str]
) -> None:
    whole: list[str | Path] = ["run", "small", "--library", library, "--concurrency", "1", *chosen]
    assert dataforge(*whole, "--out", "runs/plain").exit_code == 0
    alone = asked(library)
    previewed = dataforge(*whole, "--out", "runs/seen", "--preview", "4")
    assert previewed.exit_code == 0, previewed.output
    assert 0 < asked(library) - alone < alone
    assert dataforge(*whole, "--out", "runs/seen").exit_code == 0
    assert asked(library) == 2 * alone
    assert tables("seen") == tables("plain")
    run = json.loads(Path("runs/seen/run.json").read_text())
    assert run["changes"] == []


def test_each_walk_is_shown_in_full_as_show_does(library: Path) -> None:
    done = dataforge("run", "small", "--library", library, "--walks", "9", "--preview", "3")
    assert done.exit_code == 0, done.output
    names = re.findall(r"^walk     (\w{16}): ", done.stdout, re.M)
    assert len(names) == 3
    for name in names:
        shown = dataforge("show", name, "--run", "runs/small", "--full")
        assert shown.stdout in done.stdout
        assert re.search(r"(Rap|News): passage number \d+ about river", shown.stdout)


def test_the_whole_is_estimated_with_its_spread(library: Path) -> None:
    done = dataforge("run", "small", "--library", library, "--walks", "240", "--preview", "6")
    lines = done.stdout.partition("the whole, 240 walks, judged by these 6")[2].splitlines()
    said = {line[2:12].strip(): line[12:].strip() for line in lines[1:6]}
    assert said.keys() == {"accepted", "calls", "tokens in", "tokens out", "time"}
    for name in ("accepted", "calls", "tokens in", "tokens out"):
        assert re.fullmatch(r"[\d,]+ ± [\d,]+", said[name]), said
    calls = asked(library) * 40
    total, error = (int(each.replace(",", "")) for each in said["calls"].split(" ± "))
    assert abs(total - calls) <= max(error, 5)
    assert said["time"].endswith(("more", "do not"))
    assert "That is rough: 6 walks know nothing of routes that none of them took." in done.stdout


def test_with_an_aim_the_walks_it_takes_are_estimated(library: Path) -> None:
    done = dataforge("run", "small", "--library", library, "--accept", "40", "--preview", "8")
    found = re.search(r"the whole, (\d+) walks, judged by these 8", done.stdout)
    assert found is not None, done.output
    assert 40 <= int(found[1]) <= 800


def test_a_preview_of_all_there_is_estimates_nothing(library: Path) -> None:
    done = dataforge("run", "small", "--library", library, "--walks", "2", "--preview", "5")
    assert "these 2 walks are the whole:\n" in done.stdout
    assert "±" not in done.stdout
    assert f"  calls       {asked(library)}\n" in done.stdout


def test_a_preview_given_again_calls_no_model_and_says_the_same(library: Path) -> None:
    command = ("run", "small", "--library", library, "--walks", "20", "--preview", "3")
    first, before = dataforge(*command), asked(library)
    again = dataforge(*command)
    assert asked(library) == before
    assert again.stdout == first.stdout


def test_where_no_walk_is_accepted_they_are_shown_all_the_same(library: Path) -> None:
    judge = library / "judges" / "coin.py"
    judge.write_text(judge.read_text().replace('"fail" if mark == 0 else "pass"', '"fail"'))
    done = dataforge("run", "small", "--library", library, "--walks", "9", "--preview", "2")
    assert done.exit_code == 1
    assert done.stdout.count(": rejected\n") == 2
    assert "accepted    0 ±" in done.stdout
    assert "no walk was accepted" in done.stderr


def test_a_preview_that_cannot_be_is_one_line(library: Path) -> None:
    wrongs = (["--model", "writer=nothing"], ["--dry"], ["--preview", "0"], ["--on", "ray"])
    for wrong in wrongs:
        done = dataforge("run", "small", "--library", library, "--preview", "2", *wrong)
        assert done.exit_code == 2
        assert not Path("runs").exists()


def test_a_later_run_with_more_walks_holds_those_of_the_preview(library: Path) -> None:
    dataforge("run", "small", "--library", library, "--preview", "5")
    few = {sample.id for sample in read_samples(Path("runs/small/corpus.parquet"))}
    dataforge("run", "small", "--library", library)
    assert few < {sample.id for sample in read_samples(Path("runs/small/corpus.parquet"))}
