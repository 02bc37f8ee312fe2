"""The key of an endpoint: where it is found, and how it stays out of sight.

It comes from a variable of the environment or from a file that a spec names; the spec holds the
name alone, so nothing that is written down has the key in it. It is read once, when a model is
opened. Who may read the file is its owner's business.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from dataforge.errors import UnknownModel

__all__ = ["Key", "find_key", "is_at"]

_LONGEST = 16_384


@dataclass(frozen=True, slots=True)
class Key:
    """A key and what to do where it is refused."""

    value: str = field(repr=False)
    """Empty where there is none."""
    remedy: str
    """Such as `set OPENAI_API_KEY in the environment`."""

    def hidden(self, text: str) -> str:
        """The text without the key, which some servers repeat in their complaints.

        Also where a JSON text spells it with escapes, which are undone only later.
        """
        return re.sub("".join(map(_spelt, self.value)), "***", text) if self.value else text


def find_key(env: str | None, file: str | None, usual: tuple[str, ...], *, needed: str = "") -> Key:
    """The key in the variable or the file that was named, else in the first of the `usual` ones.

    Raises UnknownModel when what was named holds no key, when what holds one holds more than that,
    and when there is none for what has it `needed`.
    """
    if env is not None and file is not None:
        raise UnknownModel(f"key_env={env} and key_file={file}: name one of the two")
    if file is not None:
        where = f"key_file={file}"
        return Key(_checked(_read(file), where), f"look at the file of {where}")
    if env is not None:
        if not os.environ.get(env, "").strip():
            raise UnknownModel(f"key_env={env}: there is no such variable in the environment")
        usual = (env,)
    found = next((name for name in usual if os.environ.get(name, "").strip()), None)
    if needed and found is None:
        raise UnknownModel(
            f"{needed}: needs a key: set {usual[0]} in the environment, or name another variable "
            "with ?key_env=NAME or a file with ?key_file=PATH"
        )
    remedy = f"set {found or usual[0]} in the environment"
    return Key(_checked(os.environ[found], found) if found else "", remedy)


def is_at(url: str, domain: str) -> bool:
    """Whether an address belongs to a domain, whose key it may then have."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    return host == domain or host.endswith(f".{domain}")


def _read(file: str) -> str:
    try:
        with Path(file).expanduser().open("rb") as stream:
            content = stream.read(_LONGEST + 1)
    except (OSError, ValueError, RuntimeError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise UnknownModel(f"key_file={file}: cannot be read ({said})") from None
    if len(content) > _LONGEST:
        raise UnknownModel(f"key_file={file}: is too long for a key, which is one word")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise UnknownModel(f"key_file={file}: is not a text; put the key into it") from None
    if not text.strip():
        raise UnknownModel(f"key_file={file}: is empty; put the key into it")
    return text


def _spelt(character: str) -> str:
    """A pattern for a character in any spelling of JSON."""
    plain = re.escape(character)
    return rf"(?:{plain}|\\{plain}|\\u(?i:{ord(character):04x}))"


def _checked(text: str, where: str) -> str:
    key = text.strip()
    # A line break would go on as another header, and aiohttp's complaint would show the key.
    if not re.fullmatch(r"[!-~]+", key):
        raise UnknownModel(f"{where}: holds more than a key, which is one word of plain characters")
    return key
