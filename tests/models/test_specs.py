from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dataforge.errors import UnknownModel
from dataforge.models.specs import gguf_path, open_model, read_spec, weights_of


@pytest.mark.parametrize(
    ("text", "form", "name", "options"),
    [
        ("embedded", "embedded", "embedded", {}),
        (" embedded?parallel=1 ", "embedded", "embedded", {"parallel": "1"}),
        ("gguf:/m/a b.gguf", "gguf", "/m/a b.gguf", {}),
        ("gguf:/m/a?b.gguf", "gguf", "/m/a?b.gguf", {}),
        (
            "gguf:a.gguf?context=8192&engines=2",
            "gguf",
            "a.gguf",
            {"context": "8192", "engines": "2"},
        ),
        ("http://h:1/v1#m", "http", "http://h:1/v1#m", {}),
        ("https://h/v1?version=2#Org/M", "http", "https://h/v1?version=2#Org/M", {}),
        (
            "http://h/v1#m?weights=q&limit=4",
            "http",
            "http://h/v1#m",
            {"weights": "q", "limit": "4"},
        ),
        ("vllm:Qwen/Qwen3-8B", "vllm", "Qwen/Qwen3-8B", {}),
        ("scripted:/r.py", "scripted", "/r.py", {}),
        ("openai/gpt-4o-mini", "hosted", "openai/gpt-4o-mini", {}),
        (
            "anthropic:claude-x?sampling=off&url=https://h:1/a",
            "anthropic",
            "claude-x",
            {"sampling": "off", "url": "https://h:1/a"},
        ),
        ("ollama/llama3:8b?timeout=9", "hosted", "ollama/llama3:8b", {"timeout": "9"}),
    ],
)
def test_each_form_is_read(text: str, form: str, name: str, options: dict[str, str]) -> None:
    spec = read_spec(text)
    assert (spec.form, spec.name, dict(spec.options)) == (form, name, options)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty spec"),
        ("embeded", "did you mean 'embedded'"),
        ("ggfu:/a.gguf", "write gguf:"),
        ("scrpted:/a.py", "did you mean 'scripted'"),
        ("antropic:claude", "did you mean 'anthropic'"),
        ("gpt-4o-mini", "provider/model"),
        ("/models/llama.gguf", "write gguf:/models/llama.gguf"),
        ("./models/llama", "A model is one of"),
        ("gguf:", "names nothing"),
        ("code:likeness", "judge in code"),
        ("http://h:1/v1", "after a #"),
        ("http://h:1/v1#", "after a #"),
        ("http://#m", "after a #"),
        ("embedded?paralel=1", "did you mean 'parallel'"),
        ("embedded?weights=x", "no option 'weights'"),
    ],
)
def test_anything_else_is_refused_with_the_way_out(text: str, said: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        open_model(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(UnknownModel, match="DATAFORGE_API_KEY") as caught:
        open_model("https://me:planted@h/v1#m")
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize("options", ["limit=0", "limit=x", "timeout=soon", "timeout=0", "schema=1"])
def test_an_option_must_be_what_it_is(options: str) -> None:
    with pytest.raises(UnknownModel, match="must be"):
        open_model(f"http://h/v1#m?{options}")


def test_the_same_model_by_any_road_has_the_same_weights() -> None:
    roads = (
        "openai/gpt-4o-mini",
        "openrouter/openai/gpt-4o-mini",
        "https://api.openai.com/v1#gpt-4o-mini",
        "http://localhost:1/v1#judge?weights=gpt-4o-mini",
        "vllm:openai/gpt-4o-mini",
    )
    assert {weights_of(road) for road in roads} == {"served:gpt-4o-mini"}


def test_only_gguf_specs_have_a_gguf_path(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF....tokenizer.chat_template")
    assert gguf_path(f"gguf:{file}?context=512") == file
    assert gguf_path("openai/gpt-4o-mini") is None


def test_a_home_may_be_written_as_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "m.gguf").write_bytes(b"GGUF....tokenizer.chat_template")
    assert gguf_path("gguf:~/m.gguf") == tmp_path / "m.gguf"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file"),
        (b"", "not a GGUF file"),
        (b"PK\x03\x04 a zip", "not a GGUF file"),
        (b"GGUF but a base model", "carries no chat template"),
    ],
)
def test_what_is_no_chat_model_is_refused(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "m.gguf"
    if content is not None:
        file.write_bytes(content)
    for ask in (open_model, weights_of):
        with pytest.raises(UnknownModel, match=said):
            ask(f"gguf:{file}")


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF\x03\x00\x00\x00 tokenizer.chat_template")
    with pytest.raises(UnknownModel, match="cannot load it"):
        open_model(f"gguf:{file}")


def test_reading_specs_imports_nothing_heavy() -> None:
    heavy = "torch transformers aiohttp litellm xllamacpp sentence_transformers vllm"
    code = (
        "import sys\nfrom dataforge.models.specs import weights_of\n"
        "weights_of('openai/gpt-4o-mini'); weights_of('http://h/v1#m')\n"
        f"print([name for name in '{heavy}'.split() if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
