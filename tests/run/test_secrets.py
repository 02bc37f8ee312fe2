"""A run lets out nothing: it speaks to its model alone, and shows its key nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.run.faulty import HURRY, Desk, Plan, serving, spellings

pytestmark = pytest.mark.slow

LEDGER = (
    HURRY
    + """
import os
import sys

ledger = open(os.environ["LEDGER"], "a", buffering=1)


def note(event, args):
    if event in ("socket.bind", "socket.connect", "socket.getaddrinfo"):
        ledger.write(f"{event} {args[-1] if event != 'socket.getaddrinfo' else args[0]}\\n")


sys.addaudithook(note)
"""
)


def test_a_run_listens_nowhere_and_speaks_to_its_model_alone(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    with serving(tmp_path, Plan({"500": 10, "reset": 10})) as served:
        environ = {"LEDGER": str(ledger)}
        desk = Desk(tmp_path, served.spec(), walks=8, custom=LEDGER, environ=environ)
        assert desk.give().code == 0
    port = int(served.url.split(":")[2].split("/")[0])
    seen = set(ledger.read_text().splitlines())
    assert f"socket.connect ('127.0.0.1', {port})" in seen
    assert seen <= {f"socket.connect ('127.0.0.1', {port})", "socket.getaddrinfo 127.0.0.1"}


PLANTED = "sk-planted-8f3b2c71d5e946a0bc"


def leaks(secret: str, folder: Path, *said: str) -> list[str]:
    """Where a secret shows in the files of a run or in what was said."""
    texts = {f"output {number}": text.encode() for number, text in enumerate(said)}
    texts |= {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return [
        name
        for name, text in texts.items()
        if any(spelling in text for spelling in spellings(secret))
    ]


def everything(desk: Desk) -> list[str]:
    """All that a run says, and all that can be asked of it and of this machine after."""
    said = [desk.give(), desk.give("show", "--run", str(desk.run), "--json")]
    for line in (desk.run / "walks.jsonl").read_bytes().splitlines()[:1]:
        walk = json.loads(line)["id"]
        said.append(desk.give("show", walk, "--run", str(desk.run), "--json"))
    said.append(desk.give("doctor", "--library", str(desk.folder / "lib")))
    assert all("Traceback" not in done.err for done in said)
    return [text for done in said for text in (done.out, done.err)]


@pytest.mark.parametrize(
    "plan",
    [
        Plan({"500": 20, "html": 20, "shape": 20, "inner": 20, "wait": 10}, echo=True, most=99),
        Plan(echo=True, fatal=(401, "wrong key"), fatal_from=8),
        Plan(echo=True, fatal=(403, "not yours"), fatal_from=8),
        Plan(echo=True, fatal=(400, "cannot read that"), fatal_from=8),
    ],
    ids=["transient", "401", "403", "400"],
)
def test_a_key_shows_in_no_file_and_no_output(tmp_path: Path, plan: Plan) -> None:
    with serving(tmp_path / "endpoint", plan) as served:
        desk = Desk(tmp_path, served.spec(), environ={"DATAFORGE_API_KEY": PLANTED}, walks=6)
        said = everything(desk)
    kept = (desk.run / "walks.jsonl").read_text()
    assert "you sent Bearer ***" in "".join((*said, kept))
    assert not leaks(PLANTED, desk.run, *said)


def test_a_key_a_server_writes_with_escapes_shows_nowhere(tmp_path: Path) -> None:
    key = PLANTED.replace("8f", "+8f")
    plan = Plan(echo=True, fatal=(401, "wrong key"))
    with serving(tmp_path / "endpoint", plan) as served:
        desk = Desk(tmp_path, served.spec(), environ={"DATAFORGE_API_KEY": key}, walks=3)
        said = everything(desk)
    assert not leaks(key, desk.run, *said)


def test_a_key_on_the_edge_of_what_is_quoted_shows_in_no_part(tmp_path: Path) -> None:
    # Of `<html>you sent ` and all that follows, 200 characters are quoted.
    before = "x" * (200 - len("<html>you sent Bearer ") - 20)
    plan = Plan({"html": 100}, echo=True, most=99, before=before)
    with serving(tmp_path / "endpoint", plan) as served:
        desk = Desk(tmp_path, served.spec(), environ={"DATAFORGE_API_KEY": PLANTED}, walks=3)
        said = everything(desk)
    assert not leaks(PLANTED[:18], desk.run, *said)
