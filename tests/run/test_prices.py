"""What calls cost, by a table of the user's; what has no price is unknown and never nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.errors import InputError
from dataforge.models.base import Reply
from dataforge.run.prices import FREE, NO_PRICES, Price, Prices, load_prices, price_name

TOKENS = st.integers(0, 10**9)
RATE = st.floats(0, 1e4)
ONE, TWO, THREE = Price(1, 1, 1), Price(2, 2, 2), Price(3, 3, 3)


def reply(tokens_in: int, tokens_out: int, cached: int) -> Reply:
    return Reply(
        text="", finish="stop", tokens_in=tokens_in, tokens_out=tokens_out, tokens_cached=cached
    )


@given(TOKENS, TOKENS, TOKENS, RATE, RATE, RATE)
def test_cost_is_tokens_times_price_and_cached_ones_count_once(
    tokens_in: int, tokens_out: int, cached: int, read: float, written: float, again: float
) -> None:
    cached = min(cached, tokens_in)
    cost = Price(read, written, again).of(reply(tokens_in, tokens_out, cached))
    expected = ((tokens_in - cached) * read + cached * again + tokens_out * written) / 1e6
    assert cost == pytest.approx(expected)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("embedded", None),
        ("gguf:/a/model.gguf", None),
        ("vllm:Qwen/Qwen3-8B", None),
        ("scripted:/a/b.py", None),
        ("code:likeness", None),
        ("http://h/v1#qwen3-8b?limit=3", "qwen3-8b"),
        ("http://a/v1#qwen3-8b http://b/v1#qwen3-8b", "qwen3-8b"),
        ("openai/gpt-4o-mini", "openai/gpt-4o-mini"),
        ("anthropic:claude-opus-5", "claude-opus-5"),
        ("workers:pool.txt", "workers:pool.txt"),
    ],
)
def test_a_model_goes_by_its_name_and_one_in_this_process_costs_nothing(
    spec: str, name: str | None
) -> None:
    assert price_name(spec) == name
    assert NO_PRICES.of(spec) == (FREE if name is None else None)


def test_the_longest_pattern_that_fits_holds() -> None:
    prices = Prices({"*": ONE, "gpt-4o*": TWO, "openai/gpt-4o-mini": THREE})
    assert prices.of("openai/gpt-4o-mini") == THREE
    assert prices.of("http://h/v1#GPT-4o-mini") == TWO
    assert prices.of("openai/o9") == ONE


def test_a_table_is_read_and_cached_tokens_cost_as_others_where_not_said(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('["a*"]\nin = 1\nout = 2.5\n["b"]\nin = 1\nout = 2\ncached = 0.1\n')
    assert load_prices(file).table == {"a*": Price(1, 2.5, 1), "b": Price(1, 2, 0.1)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1", "write a table"),
        ('["a"]\nin = 1', "lacks out"),
        ('["a"]\nin = 1\nout = 2\ninn = 3', "no key 'inn'; there are in, out, cached"),
        ('["a"]\nin = -1\nout = 2', "in = -1 must be USD a million tokens"),
        ('["a"]\nin = nan\nout = 2', "in = nan must be"),
        ('["a"]\nin = true\nout = 2', "in = True must be"),
        ('["a"]\nin = "1"\nout = 2', "in = '1' must be"),
        ('["a"\n', "is not TOML"),
    ],
)
def test_a_table_that_is_wrong_names_file_model_and_key(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        load_prices(file)
    assert said in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="cannot be read"):
        load_prices(tmp_path / "none.toml")
