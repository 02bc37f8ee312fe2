"""A real server on this machine that answers as a test says and remembers what it got."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from dataforge.models.base import Transport
from dataforge.models.specs import open_model

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Endpoint:
    """The server, and the models that were opened on it."""

    def __init__(self, spec: str, good: object) -> None:
        """`spec` has holes for `url`, `name` and `options`; `good` is the usual answer."""
        self._spec = spec
        self._good = good
        self.answer: Answer = self.good
        self.bodies: list[dict[str, object]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self.opened: list[Transport] = []

    async def good(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self._good)

    def says(self, status: int, body: str = "", **headers: str) -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return web.Response(status=status, text=body, headers=named)

        self.answer = answer

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        self.headers.append(dict(request.headers))
        return await self.answer(request)

    def open(self, options: str = "", name: str = "Org/Model-1") -> Transport:
        spec = self._spec.format(url=self.url, name=name, options=options)
        self.opened.append(open_model(spec))
        return self.opened[-1]


@asynccontextmanager
async def serving(path: str, endpoint: Endpoint) -> AsyncIterator[Endpoint]:
    """The endpoint, taking posts to `path`."""
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post(path, endpoint.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    endpoint.url = f"http://{host}:{port}"
    try:
        yield endpoint
    finally:
        for model in endpoint.opened:
            await model.close()
        await runner.cleanup()
