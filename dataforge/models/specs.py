"""Model specs: one line of text that says which model plays a role, and how it is reached.

    embedded                             SmolLM2-135M, in this process, no key, no network
    gguf:/path/model.gguf                any GGUF chat model, in this process
    http://localhost:8000/v1#NAME        any OpenAI-compatible endpoint; https too
    vllm:NAME-OR-FOLDER                  vLLM in this process, on a GPU
    anthropic:claude-sonnet-4-5          Anthropic's own API
    openai/gpt-4o-mini                   any provider that litellm knows, by its name for it
    scripted:/path/replies.py            a Python file's `reply(messages, params)`

Options follow a `?`: `embedded?context=8192`, `http://…#judge?weights=qwen3-8b&timeout=60`. Reading
a spec imports no client and touches no network; opening one imports only its own transport.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from dataforge.errors import UnknownModel
from dataforge.models.base import Transport
from dataforge.models.weights import declared_weights, file_weights, served_weights

__all__ = ["FORMS", "Spec", "gguf_path", "open_model", "read_spec", "weights_of"]

Form = Literal["embedded", "gguf", "http", "vllm", "anthropic", "hosted", "scripted"]

FORMS: Mapping[Form, str] = {
    "embedded": "embedded",
    "gguf": "gguf:/path/model.gguf",
    "http": "http://host:port/v1#model-name",
    "vllm": "vllm:name-or-folder",
    "anthropic": "anthropic:claude-name",
    "hosted": "provider/model",
    "scripted": "scripted:/path/replies.py",
}
"""What each form of spec looks like."""

_ENGINE = ("engines", "threads", "parallel", "context")
_OPTIONS: Mapping[Form, tuple[str, ...]] = {
    "embedded": _ENGINE,
    "gguf": _ENGINE,
    "http": ("weights", "limit", "timeout", "key_env", "key_file", "schema", "share"),
    "vllm": ("weights", "limit", "context"),
    "anthropic": (
        *("weights", "limit", "timeout", "key_env", "key_file", "schema", "sampling", "url"),
    ),
    "hosted": ("weights", "limit", "timeout"),
    "scripted": ("weights", "limit"),
}
_QUERY = re.compile(r"\?((?:[a-z_]+=[^&?]*)(?:&[a-z_]+=[^&?]*)*)?$")
_WORDS = ("embedded", "gguf", "vllm", "anthropic", "scripted")


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec, taken apart."""

    text: str
    """As the user wrote it."""
    form: Form
    name: str
    """The model's name or path; for `http` its address and name, `URL#NAME`."""
    options: Mapping[str, str]

    def whole(self, option: str) -> int | None:
        """A count of 1 or more, or None; UnknownModel when it is none."""
        value = self.options.get(option)
        if value is None:
            return None
        if not value.isdecimal() or int(value) == 0:
            raise self._refused(option, "a whole number of 1 or more, such as 8")
        return int(value)

    def seconds(self, option: str) -> float | None:
        """A time in seconds, or None; UnknownModel when it is none."""
        value = self.options.get(option)
        if value is None:
            return None
        if not re.fullmatch(r"\d+(\.\d+)?", value) or float(value) == 0:
            raise self._refused(option, "a number of seconds, such as 60")
        return float(value)

    def switch(self, option: str) -> bool:
        """True unless it is `off`; UnknownModel for anything but `on` and `off`."""
        value = self.options.get(option, "on")
        if value not in ("on", "off"):
            raise self._refused(option, "on or off")
        return value == "on"

    def address(self, option: str) -> str | None:
        """An http address without a password, or None; UnknownModel when it is none."""
        value = self.options.get(option)
        if value is None:
            return None
        _refuse_password(value)
        if not re.fullmatch(r"https?://[^/\s#]\S*", value):
            raise self._refused(option, "an address, such as http://localhost:8000")
        return value

    @property
    def share(self) -> float:
        """Its share of the calls beside other endpoints, > 0; UnknownModel when it is none."""
        try:
            share = float(self.options.get("share", "1"))
        except ValueError:
            share = 0.0
        if not 0 < share < 1e6:
            raise self._refused("share", "a number above 0, such as 2 or 0.5")
        return share

    @property
    def weights(self) -> str | None:
        """The identity that was declared, if one was."""
        value = self.options.get("weights")
        return declared_weights(value) if value else None

    @property
    def path(self) -> Path:
        """The file that is named, with `~` filled in."""
        return Path(self.name).expanduser()

    def _refused(self, option: str, wanted: str) -> UnknownModel:
        return UnknownModel(f"{self.text}: {option}={self.options[option]} must be {wanted}")


def read_spec(text: str) -> Spec:
    """The spec, taken apart; UnknownModel when it has no known form or an unknown option."""
    text = text.strip()
    query = _QUERY.search(text)
    # What stands before the `#` of an address is the address's own.
    if query and text.startswith(("http://", "https://")) and "#" not in text[: query.start()]:
        query = None
    body = text[: query.start()] if query else text
    options: dict[str, str] = {}
    for pair in query[1].split("&") if query and query[1] else ():
        key, _, options[key] = pair.partition("=")
    form, name = _form(body, text)
    for option in options:
        if option not in _OPTIONS[form]:
            raise UnknownModel(
                f"{text}: there is no option {option!r}"
                f"{_near(option, _OPTIONS[form])} Those of {FORMS[form]}: "
                f"{', '.join(_OPTIONS[form])}"
            )
    return Spec(text, form, name, options)


def open_model(text: str) -> Transport:
    """The model of a spec, ready for calls; the caller closes it.

    Raises UnknownModel when there is no such model here, saying what to install or to change.
    """
    spec = read_spec(text)
    if spec.form in ("embedded", "gguf"):
        return _open_gguf(spec)
    if spec.form == "http":
        return _open_http(spec)
    if spec.form == "anthropic":
        return _open_anthropic(spec)
    limit = spec.whole("limit")
    if spec.form == "scripted":
        from dataforge.models.scripted import ScriptedModel

        return ScriptedModel.from_file(spec.path, weights=spec.weights, limit=limit or 64)
    if spec.form == "vllm":
        from dataforge.models.local import LocalModel

        context = spec.whole("context")
        return LocalModel(spec.name, weights=spec.weights, limit=limit or 256, context=context)
    from dataforge.models.hosted import HostedModel

    timeout = spec.seconds("timeout") or 600.0
    return HostedModel(spec.name, weights=spec.weights, limit=limit or 16, timeout=timeout)


def weights_of(text: str) -> str:
    """Identity of a spec's weights, without opening the model.

    Raises UnknownModel when the file it lies in is missing; a server is not asked.
    """
    spec = read_spec(text)
    if spec.weights is not None:
        return spec.weights
    if spec.form in ("embedded", "gguf"):
        return file_weights(_gguf(spec))
    if spec.form == "scripted":
        from dataforge.models.scripted import script_weights

        return script_weights(spec.path)
    return served_weights(spec.name.partition("#")[2] if spec.form == "http" else spec.name)


def gguf_path(text: str) -> Path | None:
    """The GGUF file that `embedded` or `gguf:…` means, checked; None for any other spec."""
    spec = read_spec(text)
    return _gguf(spec) if spec.form in ("embedded", "gguf") else None


def _gguf(spec: Spec) -> Path:
    from dataforge.models.embedded import check_gguf, smollm2_path

    if spec.form == "embedded":
        return smollm2_path()
    check_gguf(spec.path)
    return spec.path


def _open_gguf(spec: Spec) -> Transport:
    from dataforge.models.embedded import EmbeddedModel

    return EmbeddedModel(
        _gguf(spec),
        engines=spec.whole("engines"),
        threads=spec.whole("threads"),
        parallel=spec.whole("parallel"),
        context=spec.whole("context") or 4096,
    )


def _open_http(spec: Spec) -> Transport:
    from dataforge.models.http import HttpModel

    url, _, name = spec.name.partition("#")
    return HttpModel(
        url,
        name,
        weights=spec.weights,
        limit=spec.whole("limit") or 32,
        timeout=spec.seconds("timeout") or 600.0,
        key_env=spec.options.get("key_env"),
        key_file=spec.options.get("key_file"),
        schemas=spec.switch("schema"),
    )


def _open_anthropic(spec: Spec) -> Transport:
    from dataforge.models.anthropic import AnthropicModel

    return AnthropicModel(
        spec.name,
        url=spec.address("url") or "https://api.anthropic.com",
        weights=spec.weights,
        limit=spec.whole("limit") or 16,
        timeout=spec.seconds("timeout") or 600.0,
        key_env=spec.options.get("key_env"),
        key_file=spec.options.get("key_file"),
        schemas=spec.switch("schema"),
        sampling=spec.switch("sampling"),
    )


def _form(body: str, text: str) -> tuple[Form, str]:
    """The form and what is named in it."""
    word, colon, rest = body.partition(":")
    if body == "embedded":
        return "embedded", body
    if word in ("http", "https") and colon:
        url, mark, name = body.partition("#")
        if not re.match(r"https?://[^/\s]", url) or not mark or not name:
            raise UnknownModel(f"{text}: name the model after a #, as in {FORMS['http']}")
        _refuse_password(url)
        return "http", body
    for form in ("gguf", "vllm", "anthropic", "scripted"):
        if word == form and colon:
            if not rest:
                raise UnknownModel(f"{text}: names nothing; write {FORMS[form]}")
            return form, rest
    if word == "code" and colon:
        raise UnknownModel(f"{text}: is a judge in code, which can play only a judge's role")
    if body.lower().endswith(".gguf"):
        raise UnknownModel(f"{text}: is a file, it seems; write gguf:{body}")
    if re.fullmatch(r"[\w.-]+/\S+", body) and not body.startswith("."):
        return "hosted", body
    raise UnknownModel(
        f"{text or 'an empty spec'}: no such model{_near(word, _WORDS)} A model is one of: "
        f"{', '.join(FORMS.values())}"
    )


def _refuse_password(url: str) -> None:
    if "@" in url.partition("//")[2].partition("/")[0]:
        # Specs are shown and written down; the text itself is left out of the message.
        raise UnknownModel(
            "an address with a password in it: leave it out, and set DATAFORGE_API_KEY or name "
            "another variable with ?key_env=NAME"
        )


def _near(word: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else "."
