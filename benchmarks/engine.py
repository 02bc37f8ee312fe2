"""What a call costs in the run engine, beside a bare HTTP loop and litellm.

`python benchmarks/engine.py [--quick] [--json FILE]`. A server in a process of its own answers chat
completions after a set delay. Each client is a process too: it makes two calls a row, the second
with the first's reply in it, and tells its CPU seconds, its wall seconds and its peak memory. CPU
per call is marginal, taken between a short and a long run, so that imports and set-up cancel out.
The limit is aiohttp and a semaphore with nothing else: no choice of walk, no contract, no journal,
no accounts. The peer is litellm, where it is installed. A run of ours is also killed half way and
continued, and the server tells which calls it was asked twice.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

TEXT = "The heron stood in the shallows until the light was gone, and then it stood there still. "
REPLY = TEXT * 3


async def serve(delay: float, ready: Path) -> None:
    """Answers chat completions until it is killed; `ready` gets the port."""
    from aiohttp import web

    asked: Counter[str] = Counter()

    async def complete(request: web.Request) -> web.Response:
        body = await request.read()
        asked[hashlib.blake2b(body, digest_size=16).hexdigest()] += 1
        if delay:
            await asyncio.sleep(delay)
        message = {"role": "assistant", "content": REPLY}
        usage = {"prompt_tokens": 60, "completion_tokens": 60, "total_tokens": 120}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        about = {"id": "x", "object": "chat.completion", "created": 0, "model": "heron"}
        return web.json_response({**about, "choices": [choice], "usage": usage})

    async def count(request: web.Request) -> web.Response:
        return web.json_response({"asked": asked.total(), "twice": asked.total() - len(asked)})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    app.router.add_get("/count", count)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    ready.write_text(str(port))  # noqa: ASYNC240
    await asyncio.Event().wait()


def prompts(row: int) -> tuple[str, str]:
    return f"Passage {row}: {TEXT * 4}Retell it.", f"Passage {row}. Ask about: "


async def bare(url: str, rows: int, concurrency: int, folder: Path) -> None:
    """The limit: a session, a semaphore, and JSON."""
    import aiohttp

    slots = asyncio.Semaphore(concurrency)
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask(text: str) -> str:
            message = {"role": "user", "content": text}
            request = {"model": "heron", "messages": [message], "max_tokens": 200, "seed": 1}
            async with session.post(f"{url}/chat/completions", json=request) as response:
                found = json.loads(await response.read())
            reply: str = found["choices"][0]["message"]["content"]
            return reply

        async def row(number: int) -> None:
            async with slots:
                first, second = prompts(number)
                await ask(second + await ask(first))

        async with asyncio.TaskGroup() as group:
            for number in range(rows):
                group.create_task(row(number))


async def litellm(url: str, rows: int, concurrency: int, folder: Path) -> None:
    """The peer: every call through `acompletion`."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    from litellm import acompletion

    slots = asyncio.Semaphore(concurrency)

    async def ask(text: str) -> str:
        reply = await acompletion(
            model="openai/heron",
            api_base=url,
            api_key="none",
            messages=[{"role": "user", "content": text}],
            max_tokens=200,
            seed=1,
        )
        return str(reply.choices[0].message.content)

    async def row(number: int) -> None:
        async with slots:
            first, second = prompts(number)
            await ask(second + await ask(first))

    async with asyncio.TaskGroup() as group:
        for number in range(rows):
            group.create_task(row(number))


async def ours(url: str, rows: int, concurrency: int, folder: Path) -> None:
    """A whole run: walks, contracts, journal, accounts, corpus and report."""
    from typing import Annotated

    from annotated_types import MinLen

    from dataforge import Graph, Message, Model, Struct, node
    from dataforge.models.http import HttpModel
    from dataforge.run.forge import Order, forge
    from dataforge.run.garbage import collect_seldom
    from dataforge.run.halt import Halt
    from dataforge.run.roles import OpenModel
    from dataforge.run.seed import Seed, SeedStore

    class Passage(Struct):
        passage: Annotated[str, MinLen(20)]

    class Told(Struct):
        text: Annotated[str, MinLen(20)]

    class Chat(Struct):
        messages: list[dict[str, str]]

    class Nothing(Struct): ...

    @node
    async def gate(seen: Passage) -> Nothing:
        return Nothing()

    @node
    async def retell(seen: Passage, *, writer: Model) -> Told:
        reply = await writer.chat([Message("user", seen.passage)], max_tokens=200)
        return Told(text=reply.text)

    @node
    async def ask(seen: Told, *, writer: Model) -> Chat:
        reply = await writer.chat([Message("user", f"Ask about: {seen.text}")], max_tokens=200)
        asked = {"role": "user", "content": seen.text}
        return Chat(messages=[asked, {"role": "assistant", "content": reply.text}])

    collect_seldom()
    model = HttpModel(url, "heron", limit=concurrency)
    order = Order(
        graph=Graph.build("bench", [gate, retell, ask], "gate", "ask"),
        players={"writer": OpenModel.of("bench", model)},
        seeds=SeedStore.of(
            "made up", (Seed(f"row-{number}", prompts(number)[0]) for number in range(rows))
        ),
        walks=rows,
        concurrency=concurrency,
    )
    report = await forge(order, folder, lambda event: None, Halt())
    await model.close()
    assert report.accepted == rows, report


CLIENTS: dict[str, Callable[[str, int, int, Path], Awaitable[None]]] = {
    "bare": bare,
    "ours": ours,
    "litellm": litellm,
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one client's process took."""

    cpu: float
    """Seconds, of the client alone."""
    wall: float
    """Seconds from the first call on."""
    peak_mb: float


def told(name: str, url: str, rows: int, concurrency: int, folder: Path) -> None:
    """In the client's process: does the work and prints its cost."""
    began = time.perf_counter()
    asyncio.run(_awaited(CLIENTS[name](url, rows, concurrency, folder)))
    wall = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    peak = used.ru_maxrss / 1024
    print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "wall": wall, "peak_mb": peak}))


async def _awaited(work: Awaitable[None]) -> None:
    await work


def command(name: str, url: str, rows: int, concurrency: int, folder: Path) -> list[str]:
    told_to = ["--client", name, "--url", url, "--rows", str(rows)]
    return [sys.executable, __file__, *told_to, "--concurrency", str(concurrency), str(folder)]


def run_client(name: str, url: str, rows: int, concurrency: int) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        made = command(name, url, rows, concurrency, Path(folder) / "run")
        done = subprocess.run(made, check=True, capture_output=True, text=True)
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


class Server:
    """The server's process."""

    def __init__(self, delay_ms: float) -> None:
        self._folder = tempfile.TemporaryDirectory()
        ready = Path(self._folder.name) / "port"
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(ready), "--delay-ms", str(delay_ms)]
        )
        while not (ready.exists() and ready.read_text()):
            time.sleep(0.02)
        self.base = f"http://127.0.0.1:{ready.read_text()}"
        self.url = f"{self.base}/v1"

    def count(self) -> dict[str, int]:
        from urllib.request import urlopen

        with urlopen(f"{self.base}/count") as reply:
            found: dict[str, int] = json.loads(reply.read())
        return found

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


def repeated_after_kill(rows: int) -> dict[str, float]:
    """How many calls a run killed half way was asked twice, finished ones and those in flight."""
    server = Server(5)
    try:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "run"
            made = command("ours", server.url, rows, 16, place)
            process = subprocess.Popen(made, stdout=subprocess.DEVNULL)
            while server.count()["asked"] < rows:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.wait()
            journal = place / "calls.jsonl"
            finished = journal.read_bytes().count(b"\n")
            asked = server.count()["asked"]
            subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
            again = server.count()["twice"]
            lines = [json.loads(line) for line in journal.read_bytes().splitlines()]
            doubled = len(lines) - len({line["key"] for line in lines})
        return {
            "kill_finished": float(finished),
            "kill_in_flight": float(asked - finished),
            "kill_asked_twice": float(again),
            "kill_doubled_on_disk": float(doubled),
            "calls_repeated_after_kill": float(max(0, again - (asked - finished))),
        }
    finally:
        server.close()


def measure(quick: bool) -> tuple[dict[str, float], dict[str, float]]:
    """Results and ratios."""
    names = ["bare", "ours", *(["litellm"] if find_spec("litellm") else [])]
    short, long, rounds = (100, 600, 1) if quick else (200, 2_000, 3)
    results: dict[str, float] = {}
    for delay, widths in ((0, (32, 256)), (50, (32,))):
        server = Server(delay)
        try:
            for width in widths:
                taken: dict[str, list[tuple[Cost, Cost]]] = {name: [] for name in names}
                for _ in range(rounds):
                    for name in names:
                        pair = [run_client(name, server.url, n, width) for n in (short, long)]
                        taken[name].append((pair[0], pair[1]))
                for name, pairs in taken.items():
                    label = f"{name}_{delay}ms_{width}"
                    cpu = [(b.cpu - a.cpu) / (2 * (long - short)) for a, b in pairs]
                    rate = [(long - short) / max(b.wall - a.wall, 1e-9) for a, b in pairs]
                    results[f"cpu_ms_per_call_{label}"] = 1_000 * statistics.median(cpu)
                    results[f"rows_per_s_{label}"] = statistics.median(rate)
                    results[f"peak_mb_{label}"] = max(b.peak_mb for _, b in pairs)
        finally:
            server.close()
    results |= repeated_after_kill(200 if quick else 500)
    ratios = {
        "cpu_per_call_vs_aiohttp": results["cpu_ms_per_call_ours_0ms_32"]
        / results["cpu_ms_per_call_bare_0ms_32"],
        "rows_per_s_vs_aiohttp_0ms": results["rows_per_s_ours_0ms_32"]
        / results["rows_per_s_bare_0ms_32"],
        "rows_per_s_vs_aiohttp_50ms": results["rows_per_s_ours_50ms_32"]
        / results["rows_per_s_bare_50ms_32"],
        "cpu_per_call_256_vs_32": results["cpu_ms_per_call_ours_0ms_256"]
        / results["cpu_ms_per_call_ours_0ms_32"],
        "peak_mb": results["peak_mb_ours_0ms_32"],
        "calls_repeated_after_kill": results["calls_repeated_after_kill"],
    }
    if "litellm" in names:
        ratios["cpu_per_call_vs_litellm"] = (
            results["cpu_ms_per_call_ours_0ms_32"] / results["cpu_ms_per_call_litellm_0ms_32"]
        )
    return results, ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="once each, within 50 s on 2 cores")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    hidden = {"help": argparse.SUPPRESS}
    parser.add_argument("--serve", type=Path, **hidden)  # type: ignore[arg-type]
    parser.add_argument("--delay-ms", type=float, default=0.0, **hidden)  # type: ignore[arg-type]
    parser.add_argument("--client", choices=CLIENTS, **hidden)  # type: ignore[arg-type]
    parser.add_argument("--url", **hidden)  # type: ignore[arg-type]
    parser.add_argument("--rows", type=int, **hidden)  # type: ignore[arg-type]
    parser.add_argument("--concurrency", type=int, **hidden)  # type: ignore[arg-type]
    parser.add_argument("folder", type=Path, nargs="?", **hidden)  # type: ignore[arg-type]
    asked = parser.parse_args()
    if asked.serve is not None:
        asyncio.run(serve(asked.delay_ms / 1_000, asked.serve))
        return
    if asked.client is not None:
        told(asked.client, asked.url, asked.rows, asked.concurrency, asked.folder)
        return
    results, ratios = measure(asked.quick)
    for name, value in (results | ratios).items():
        print(f"{name:34} {value:.5g}")
    if "cpu_per_call_vs_litellm" not in ratios:
        print(f"{'cpu_per_call_vs_litellm':34} not measured: litellm is not installed")
    if asked.json is not None:
        record = {
            "name": "engine",
            "date": datetime.now(UTC).date().isoformat(),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
            "results": results,
            "ratios": ratios,
        }
        asked.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
