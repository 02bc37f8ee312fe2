"""A chat endpoint that fails by a plan, in a process of its own, and a command line to meet it.

What it replies is a function of the request alone; how it fails, of the request and of how often it
came, drawn by the plan's seed. So a run meets the same faults at any speed, and what passes changes
nothing of what it makes. After `most` failures a request is answered, rate limits not counted.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.commands.small import make_library

if TYPE_CHECKING:
    from aiohttp import web

ROOT = Path(__file__).parents[2]
LIMITS = ("limit", "wait", "burst")
TRANSIENT = ("500", "502", "503", "408", "reset", "half", "html", "shape", "zeros", "inner")

HURRY = """
import asyncio

really = asyncio.sleep


async def sleep(seconds, result=None):
    return await really(seconds / 200, result)


asyncio.sleep = sleep
"""
"""A `sitecustomize` by which a process waits out its pauses 200 times as fast."""


@dataclass(frozen=True)
class Plan:
    """How an endpoint fails."""

    rates: Mapping[str, int] = field(default_factory=dict)
    """Fault -> in how many of a hundred requests; rate limits are `LIMITS`, others `TRANSIENT`."""
    most: int = 4
    """After how many faults, rate limits not counted, a request is answered."""
    odd: bool = False
    """Some replies are empty, cut, huge, or hold half characters and NULs, always the same ones."""
    fatal: tuple[int, str] | None = None
    """Status and words of every answer from the `fatal_from`-th request on."""
    fatal_from: int = 0
    text: str = ""
    """What is replied to everything; empty: something that depends on the request."""
    echo: bool = False
    """Failures repeat the Authorization header."""
    before: str = ""
    """What stands before it."""
    kills: tuple[int, ...] = ()
    """At which requests the process that holds `run` is killed: odd ones before the answer."""
    run: str = ""
    held: str = ""
    """A file; while it is there, requests wait."""
    seed: int = 1


def drawn(*parts: object) -> int:
    told = json.dumps(parts).encode()
    return int.from_bytes(hashlib.blake2b(told, digest_size=6).digest())


class Endpoint:
    """The endpoint, on the serving side."""

    def __init__(self, plan: Plan, log: Path) -> None:
        self.plan = plan
        self.log = log.open("a", buffering=1)
        self.came: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.burst = 0

    async def complete(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        body = json.loads(await request.read())
        name = f"{body['messages'][-1]['content']} {body['seed']}"
        self.came[name] += 1
        number = self.came.total()
        self.note("asked", name)
        if number in self.plan.kills and number % 2:
            self.kill()
        await self.let_go()
        if self.plan.fatal is not None and number > self.plan.fatal_from:
            status, words = self.plan.fatal
            return self.complaint(request, status, words)
        fault = "" if number in self.plan.kills else self.fault(name)
        if fault:
            self.note(fault, name)
            return await self.fail(request, fault)
        data = json.dumps(self.reply(name)).encode()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.content_length = len(data)
        try:
            await response.prepare(request)
            await response.write(data)
            await response.write_eof()
        except ConnectionError:
            # The process that asked was killed meanwhile.
            return response
        self.note("served", name)
        if number in self.plan.kills and number % 2 == 0:
            self.kill()
        return response

    async def let_go(self) -> None:
        """Waits for as long as the plan's file is there, which another process takes away."""
        held = self.plan.held and Path(self.plan.held)
        while held and held.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    def note(self, what: str, name: str) -> None:
        self.log.write(json.dumps([what, name]) + "\n")

    def kill(self) -> None:
        os.kill(int((Path(self.plan.run) / "lock").read_text()), signal.SIGKILL)

    def fault(self, name: str) -> str:
        """The fault this request meets this time, or nothing."""
        if self.burst:
            self.burst -= 1
            return "limit"
        die = drawn(self.plan.seed, name, self.came[name]) % 100
        for fault, rate in self.plan.rates.items():
            if die < rate:
                if fault in LIMITS:
                    self.burst = 5 if fault == "burst" else 0
                    return fault
                self.failed[name] += 1
                return fault if self.failed[name] <= self.plan.most else ""
            die -= rate
        return ""

    async def fail(self, request: web.Request, fault: str) -> web.StreamResponse:
        from aiohttp import web

        match fault:
            case "limit" | "burst":
                return self.complaint(request, 429, "slow down")
            case "wait":
                return self.complaint(request, 429, "slow down", {"Retry-After": "2"})
            case "html":
                return web.Response(text=f"<html>{self.heard(request)}</html>")
            case "zeros":
                return web.Response(body=b"\0" * 200)
            case "shape":
                return web.json_response({"choices": [{"text": self.heard(request)}]})
            case "inner":
                said = {"code": 502, "message": f"upstream {self.heard(request)}"}
                return web.json_response({"error": said})
            case "hang":
                await asyncio.sleep(3600)
            case "half":
                response = web.StreamResponse()
                response.content_length = 5000
                await response.prepare(request)
                await response.write(b'{"choices": [{"message": {"content": "never who')
            case "reset":
                pass
            case _:
                return self.complaint(request, int(fault), "not now")
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    def complaint(
        self, request: web.Request, status: int, words: str, headers: Mapping[str, str] = {}
    ) -> web.Response:
        from aiohttp import web

        said = {"error": {"message": f"{words} {self.heard(request)}".strip()}}
        # As some servers write it, out of fear of browsers.
        text = json.dumps(said).replace("+", "\\u002b")
        return web.Response(
            text=text, status=status, headers=headers, content_type="application/json"
        )

    def heard(self, request: web.Request) -> str:
        if not self.plan.echo:
            return ""
        return f"you sent {self.plan.before}{request.headers.get('Authorization')}"

    def reply(self, name: str) -> dict[str, object]:
        text = self.plan.text or f"reply {drawn(name):x}"
        finish = "stop"
        match drawn("odd", name) % 12 if self.plan.odd else -1:
            case 0:
                text = ""
            case 1:
                text, finish = f"{text} and then", "length"
            case 2:
                text = f"{text} \ud83d and \x00 and \udc00"
            case 3 if drawn("huge", name) % 4 == 0:
                text = f"{text} {'word ' * 2_000_000}"
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


@dataclass(frozen=True)
class Served:
    """The endpoint, on the testing side."""

    url: str
    log: Path

    def spec(self, options: str = "") -> str:
        return f"{self.url}#heron{options}"

    def counted(self, what: str) -> Counter[str]:
        """How often each request was `asked`, `served` or met with a fault."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return Counter(name for kind, name in map(json.loads, lines) if kind == what)

    def faults(self) -> set[str]:
        lines = self.log.read_text().splitlines()
        return {kind for kind, _ in map(json.loads, lines)} - {"asked", "served"}


@contextmanager
def serving(folder: Path, plan: Plan) -> Iterator[Served]:
    """An endpoint of this plan until the block ends; `folder` gets its log."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "requests.jsonl"
    command = [sys.executable, "-m", "tests.run.faulty", json.dumps(asdict(plan)), str(log)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        assert process.stdout is not None
        try:
            yield Served(f"http://127.0.0.1:{int(process.stdout.readline())}/v1", log)
        finally:
            process.kill()


@dataclass(frozen=True)
class Desk:
    """A folder from which `dataforge run small` is given, always the same command."""

    folder: Path
    spec: str
    walks: int = 24
    concurrency: int = 5
    custom: str = HURRY
    """The process's `sitecustomize`."""
    more: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def popen(self, *args: str, first: Callable[[], None] | None = None) -> subprocess.Popen[str]:
        """`dataforge ARGS` as a process; without any, the run. `first` is done in it before."""
        site, library = self.folder / "site", self.folder / "lib"
        if not library.exists():
            make_library(library, seeds=self.walks)
        site.mkdir(exist_ok=True)
        (site / "sitecustomize.py").write_text(self.custom)
        roles = [f"--model={role}={self.spec}" for role in ("writer", "answerer")]
        run = ("run", "small", "--library", str(library), "--out", str(self.run), *roles)
        limits = (f"--concurrency={self.concurrency}", *self.more)
        process: subprocess.Popen[str] = subprocess.Popen(
            [sys.executable, str(ROOT / "cli.py"), *(args or (*run, *limits))],
            env={**os.environ, "PYTHONPATH": f"{site}:{ROOT}", **self.environ},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=first,
        )
        return process

    def give(self, *args: str, first: Callable[[], None] | None = None) -> Done:
        """The same, waited for."""
        with self.popen(*args, first=first) as process:
            try:
                out, err = process.communicate(timeout=300)
            finally:
                process.kill()
        return Done(process.returncode, out, err)

    def report(self) -> dict[str, object]:
        found = json.loads((self.run / "report.json").read_text())
        assert isinstance(found, dict)
        return found

    def tables(self) -> tuple[bytes, bytes]:
        """The bytes of what a run makes."""
        names = ("corpus.parquet", "calls.parquet")
        first, second = ((self.run / name).read_bytes() for name in names)
        return first, second

    def finished(self) -> Counter[str]:
        """The calls that stand whole in the journal."""
        journal = self.run / "calls.jsonl"
        whole = journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []
        chats = [entry for line in whole if (entry := json.loads(line))["kind"] == "chat"]
        return Counter(f"{e['messages'][-1]['content']} {e['params']['seed']}" for e in chats)

    def outcomes(self) -> Counter[str]:
        """How the walks ended, by the last word of the log on each."""
        lines = (self.run / "walks.jsonl").read_bytes().splitlines()
        ended = {walk["id"]: walk["outcome"] for walk in map(json.loads, lines)}
        return Counter(ended.values())

    def conserved(self) -> bool:
        """Whether the report's walks add up, and to what the log of walks says."""
        report, ended = self.report(), self.outcomes()
        kinds = ("accepted", "rejected", "failed")
        counts = [report[kind] for kind in (*kinds, "pending")]
        assert all(isinstance(count, int) for count in counts)
        adds_up = sum(count for count in counts if isinstance(count, int)) == report["walks"]
        return adds_up and all(report[kind] == ended[kind] for kind in kinds)


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    code: int
    out: str
    err: str


def spellings(secret: str) -> list[bytes]:
    """A secret as it is, and as base64 would have it at any offset."""
    found = [secret.encode()]
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + secret.encode())
        # The ends depend on what stands beside them.
        found.append(encoded[4:-4])
    return found


async def serve(plan: Plan, log: Path) -> None:
    """Answers until it is killed; prints the port."""
    from aiohttp import web

    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", Endpoint(plan, log).complete)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Plan(**json.loads(sys.argv[1])), Path(sys.argv[2])))
