"""A model that says what a Python function says: for tests and for rehearsing a graph for free.

It exercises the same path as any other model, and promises nothing of how one would write. Words
stand in for tokens, and nothing is cut unless the script returns a `Reply` that says so.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import cast

from dataforge.errors import DataForgeError, FatalModelError, UnknownModel
from dataforge.models.base import Message, Params, Reply
from dataforge.models.weights import declared_weights

__all__ = ["Script", "ScriptedModel", "script_weights"]

Said = str | Reply
Script = Callable[[Sequence[Mapping[str, str]], Mapping[str, object]], Said | Awaitable[Said]]
"""`reply(messages, params)`: messages as dicts of `role` and `content`, params as `Params` has."""


class ScriptedModel:
    """Replies by calling a function, which may be async and may raise any `ModelError`."""

    def __init__(
        self, reply: Script, *, weights: str = "scripted", limit: int = 64, where: str = "script"
    ) -> None:
        self._reply = reply
        self._weights = weights
        self._limit = limit
        self._where = where

    @classmethod
    def from_file(cls, path: Path, *, weights: str | None = None, limit: int = 64) -> ScriptedModel:
        """The model of a file that defines `reply`, and `WEIGHTS` if it likes.

        Raises UnknownModel when the file is missing, does not load or defines no `reply`.
        """
        script, said = _load(path)
        return cls(script, weights=weights or said, limit=limit, where=str(path))

    @property
    def weights(self) -> str:
        """Identity of the weights it pretends to have."""
        return self._weights

    @property
    def limit(self) -> int:
        """Most requests worth having in flight at once."""
        return self._limit

    async def complete(self, messages: Sequence[Message], params: Params) -> Reply:
        """What the function says; FatalModelError when it fails or says no text."""
        asked = [{"role": each.role, "content": each.content} for each in messages]
        try:
            said = self._reply(asked, asdict(params))
            if inspect.isawaitable(said):
                said = await said
        except DataForgeError:
            raise
        except Exception as error:
            raise FatalModelError(
                f"{self._where}: reply() raised {type(error).__name__}: {error}"
            ) from error
        if isinstance(said, Reply):
            return said
        if not isinstance(said, str):
            raise FatalModelError(
                f"{self._where}: reply() returned {type(said).__name__}, not a text or a Reply"
            )
        tokens_in = sum(len(each.content.split()) for each in messages)
        return Reply(text=said, finish="stop", tokens_in=tokens_in, tokens_out=len(said.split()))

    async def close(self) -> None:
        """Nothing to free."""


def script_weights(path: Path) -> str:
    """Identity of the weights of a script in a file, as `from_file` would give it."""
    return _load(path)[1]


def _load(path: Path) -> tuple[Script, str]:
    """The file's `reply` and its weights: what it declares, else its content's hash."""
    if not path.is_file():
        raise UnknownModel(f"scripted:{path}: there is no such file")
    digest = sha256(path.read_bytes()).hexdigest()
    name = f"dataforge_script.{digest[:16]}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UnknownModel(f"scripted:{path}: is no Python file; give it the ending .py")
    module = module_from_spec(spec)
    # Dataclasses and pydantic look their module up there while it loads.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UnknownModel(
            f"scripted:{path}: does not load: {type(error).__name__}: {error}"
        ) from error
    reply = getattr(module, "reply", None)
    if not callable(reply):
        raise UnknownModel(f"scripted:{path}: defines no `def reply(messages, params) -> str`")
    declared = getattr(module, "WEIGHTS", None)
    weights = declared_weights(declared) if isinstance(declared, str) else f"sha256:{digest}"
    return cast("Script", reply), weights
