"""The identity of a model's weights: what decides whether a judge would judge its own output.

A file is known by its content, so the same GGUF agrees with itself under any path. A served model
is known by its name alone: the last segment in lower case, without a tag (`:free`, `:latest`,
`:8b`) or `.gguf`, so that `openai/gpt-4o-mini`, `openrouter/openai/gpt-4o-mini:free` and
`https://api.openai.com/v1#gpt-4o-mini` agree. The rule is conservative: it would rather call two
models one (`llama3:8b` and `llama3:70b`) than one model two. It cannot see through an alias
(`#judge`) or another provider's spelling; `?weights=NAME` says what those are.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from pathlib import Path

__all__ = ["declared_weights", "file_weights", "served_weights"]


def served_weights(name: str) -> str:
    """Identity of a model known by `name`, such as `openai/gpt-4o-mini`."""
    last = name.strip().rstrip("/").rpartition("/")[2].lower()
    return f"served:{re.sub(r':[^:]*$', '', last).removesuffix('.gguf') or last}"


def declared_weights(name: str) -> str:
    """Identity that a spec's `weights=` option declares: a hash, or a name."""
    name = name.strip()
    if name.lower().startswith("sha256:"):
        return name.lower()
    return served_weights(name.removeprefix("served:"))


def file_weights(path: Path) -> str:
    """Identity of the weights in `path`: the SHA-256 of its bytes.

    Remembered on disk by path, size and time of change, since reading a large file takes a while.
    """
    stat = path.stat()
    key = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dataforge"
    store = cache / "weights.json"
    known = _known(store)
    if key not in known:
        with path.open("rb") as file:
            known[key] = hashlib.file_digest(file, "sha256").hexdigest()
        # A home that cannot be written costs the memory, not the answer.
        with contextlib.suppress(OSError):
            _replace(store, json.dumps(known, indent=1))
    return f"sha256:{known[key]}"


def _known(store: Path) -> dict[str, str]:
    """What the memory holds; nothing when it is absent or was damaged."""
    try:
        found = json.loads(store.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _replace(store: Path, text: str) -> None:
    store.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=store.parent, prefix=".weights-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(beside).replace(store)
    except OSError:
        Path(beside).unlink(missing_ok=True)
        raise
