"""From what a user asks of a run to the order for it: graph, seeds and opened models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dataforge.commands.options import door
from dataforge.commands.players import judge_card, open_players, specs
from dataforge.errors import LibraryError

if TYPE_CHECKING:
    from dataforge.library.graphs import LoadedGraph
    from dataforge.library.root import Library
    from dataforge.library.seeds import SeedFile
    from dataforge.run.order import Order
    from dataforge.run.policy import Policy
    from dataforge.run.roles import Role

__all__ = ["Request", "make_order", "seeds_of"]

_SEEDS = (".jsonl", ".gz", ".parquet")
_SKIPPED_SHOWN = 3
_MOST_WALKS = 256
_TRIED = 20
"""Walks made at most for each that is to be accepted, where no other limit is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a user asks of a run."""

    graph: str
    """Name or path."""
    out: Path
    library: Path | None = None
    seeds: Path | None = None
    """None: those of the library."""
    passage_field: str | None = None
    walks: int | None = None
    """In all; None: `per_seed` for each."""
    per_seed: int = 1
    accept: int | None = None
    """Stop once so many are accepted; then `walks` is the most to make."""
    run_seed: int = 0
    policy: Policy | None = None
    """By which rule walks are chosen; None: by the graph's."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Role -> spec, over those of the graph."""
    concurrency: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None
    max_walks: int | None = None
    max_seconds: float | None = None
    prices: Path | None = None
    """A table of what calls cost."""
    log: Path | None = None
    """A file that gets what happens, as JSON lines."""
    allow_shared_weights: bool = False
    accept_changes: bool = False
    on: str | None = None
    """Where the walks are made; None: in this process."""
    address: str | None = None
    """Of the cluster they are made on."""
    hands: int | None = None
    """Processes that make them there."""


async def make_order(
    request: Request,
    library: Library,
    loaded: LoadedGraph,
    stack: AsyncExitStack,
    say: Callable[[str], None],
    *,
    opened: bool = True,
) -> Order:
    """The order for a request; `stack` closes its models, `say` gets notices.

    Without `opened` no model is, and the order is for planning only. Raises UsageError, InputError
    or UnknownModel for what cannot be.
    """
    from dataforge.run.budget import Budget
    from dataforge.run.order import Order
    from dataforge.run.prices import NO_PRICES, load_prices, require_prices

    graph = loaded.graph
    chosen = specs(graph.roles, loaded.roles, request.models)
    prices = load_prices(request.prices) if request.prices else NO_PRICES
    if request.max_usd is not None:
        require_prices(chosen, prices)
    found = seeds_of(request, library, say)
    for line in (*_notices(request.graph, loaded), *_skipped(found)):
        say(f"notice: {line}")
    players = await open_players(chosen, library, stack, say, opened=opened)
    return Order(
        graph=graph,
        players=players,
        seeds=found.seeds,
        walks=_most_walks(request, len(found.seeds)),
        accept=request.accept,
        run_seed=request.run_seed,
        policy=request.policy or loaded.policy,
        budget=Budget(request.max_tokens, request.max_seconds, request.max_usd, request.max_walks),
        prices=prices,
        concurrency=request.concurrency or _concurrency(players.values()),
        allow_shared_weights=request.allow_shared_weights,
        accept_changes=request.accept_changes,
        judge_card=judge_card(chosen, library),
        skipped_seeds=[str(line) for line in found.skipped],
        skipped_count=found.skipped_count,
    )


def seeds_of(request: Request, library: Library, say: Callable[[str], None]) -> SeedFile:
    """The seeds that a request means; InputError or LibraryError where there are none.

    `say` hears how far a long reading is.
    """
    from dataforge.library.seeds import read_seeds

    def tell(count: int) -> None:
        say(f"{count:,} seeds read")

    return read_seeds(request.seeds or _bundled(library), request.passage_field, tell)


def _bundled(library: Library) -> Path:
    """The seeds of the uppermost layer that has any."""
    for layer in library.layers():
        files = layer.files("seeds", *_SEEDS)
        if len(files) > 1:
            named = ", ".join(str(file) for file in files)
            raise LibraryError(f"several files of seeds, name one with --seeds: {named}")
        if files:
            return files[0]
    raise LibraryError("no seeds come with the library: name yours with --seeds PATH")


def _notices(name: str, loaded: LoadedGraph) -> list[str]:
    """That the graph has something to say, which `check` says in full."""
    count = loaded.noticed
    if not count:
        return []
    return [f"{count} of graph {loaded.graph.name}: `{door()} check {name}` says which"]


def _skipped(found: SeedFile) -> list[str]:
    """What to say of lines that could not be used."""
    if not found.skipped:
        return []
    first = [str(line) for line in found.skipped[:_SKIPPED_SHOWN]]
    more = found.skipped_count - len(first)
    rest = [f"and {more:,} more, listed in report.json"] if more else []
    return [f"{found.skipped_count:,} seeds could not be used and are left out", *first, *rest]


def _most_walks(request: Request, seeds: int) -> int:
    if request.walks is not None:
        return request.walks
    return _TRIED * request.accept if request.accept else request.per_seed * seeds


def _concurrency(players: Iterable[Role]) -> int:
    """Enough walks to keep every model busy while others are judged."""
    from dataforge.run.roles import OpenModel

    served = {id(s.transport): s for p in players if isinstance(p, OpenModel) for s in p.served}
    limits = (each.transport.limit for each in served.values())
    return min(_MOST_WALKS, 2 * sum(limits) + 2)
