"""What happens in a run as JSON lines, for whoever gathers logs; on request.

One event a line, written as it happens, with no text of prompts or replies and no key. It adds to
what the file holds. The run's own logs are what it goes on from, not this.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dataforge.errors import UsageError

if TYPE_CHECKING:
    from dataforge.run.events import Event, Watch
    from dataforge.run.prices import Price

__all__ = ["logged"]


def logged(path: Path, watch: Watch, stack: AsyncExitStack) -> Watch:
    """A watcher that writes each event to `path` and hands it on; `stack` closes the file.

    UsageError where the file cannot be written.
    """
    try:
        file = stack.enter_context(path.open("a", encoding="utf-8", buffering=1))
    except OSError as error:
        raise UsageError(f"--log {path}: cannot be written ({error.strerror})") from None
    say = _teller()

    def see(event: Event) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        file.write(json.dumps({"at": at, **say(event)}, ensure_ascii=False) + "\n")
        watch(event)

    return see


def _teller() -> Callable[[Event], dict[str, object]]:
    from dataforge.run.events import CallEnded, CallFailed, RunBegan, Said, WalkEnded

    rates: dict[str, Price | None] = {}

    def say(event: Event) -> dict[str, object]:
        match event:
            case RunBegan():
                rates.update(event.rates)
                ended = {"accepted": event.accepted, "rejected": event.rejected}
                return {"event": "run began", "walks": event.walks, **ended}
            case CallEnded():
                price = None if event.reused else rates.get(event.role)
                return {
                    "event": "call reused" if event.reused else "call ended",
                    "walk": event.walk_id,
                    "node": event.node,
                    "role": event.role,
                    "seconds": round(event.seconds, 4),
                    "finish": event.reply.finish,
                    "tokens_in": event.reply.tokens_in,
                    "tokens_out": event.reply.tokens_out,
                    "tokens_cached": event.reply.tokens_cached,
                    "tokens_reasoning": event.reply.tokens_reasoning,
                    "usd": None if price is None else price.of(event.reply),
                }
            case CallFailed():
                return {"event": "call failed", "outcome": event.outcome}
            case WalkEnded():
                end = event.end
                why = {"node": end.node, "reason": end.reason} if end.node else {}
                return {"event": "walk ended", "walk": end.id, "outcome": end.outcome, **why}
            case Said():
                return {"event": "said", "text": event.text}

    return say
