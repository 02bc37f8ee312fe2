"""A server of chat completions in a process of its own, which can be killed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["EchoServer"]


async def serve(port: int, log: Path, delay: float) -> None:
    """Replies with a hash of the request; writes a line for each reply that was sent whole."""
    from aiohttp import web

    async def complete(request: web.Request) -> web.Response:
        asked = json.loads(await request.read())
        await asyncio.sleep(delay)
        key = hashlib.blake2b(json.dumps(asked, sort_keys=True).encode(), digest_size=8).hexdigest()
        message = {"role": "assistant", "content": f"reply {key} to that"}
        reply = web.json_response(
            {
                "choices": [{"message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 5, "completion_tokens": 3},
            }
        )
        await reply.prepare(request)
        await reply.write_eof()
        with log.open("a") as file:
            file.write(f"{key}\n")
        return reply

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


class EchoServer:
    """One such server; `url` is its address and the name of its model."""

    def __init__(self, folder: Path, delay: float = 0.01) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1#echo"
        self._log = folder / f"served-{self.port}.txt"
        self._delay = delay
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def served(self) -> list[str]:
        """What was answered whole, by a hash of the request."""
        return self._log.read_text().split() if self._log.exists() else []

    def start(self) -> None:
        """Starts it, or starts it again at the same address, and waits until it answers."""
        args = [str(self.port), str(self._log), str(self._delay)]
        self._process = subprocess.Popen([sys.executable, __file__, *args])
        while not self._answers():
            assert self._process.poll() is None

    def kill(self) -> None:
        """Kills it at once."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=5).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])))
