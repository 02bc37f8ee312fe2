"""The loss mask: what the assistant says, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.errors import PackingError
from dataforge.packing.conversations import Conversation, Refused
from dataforge.packing.tokenizer import ChatTokenizer, open_tokenizer
from dataforge.packing.tokens import NO_LOSS, Overlong, Tokens, tokenize
from tests.tiny import CHATML, QWEN, TRIMMED, UNENDED, tiny_tokenizer


def chat(*said: str, system: str | None = None) -> Conversation:
    """A conversation of user and assistant in turn."""
    turns = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)]
    first = [] if system is None else [{"role": "system", "content": system}]
    return Conversation("sample", (*first, *turns))


def tokens(
    conversation: Conversation,
    tokenizer: ChatTokenizer,
    capacity: int = 10_000,
    overlong: Overlong = "drop",
) -> Tokens | Refused:
    (made,) = tokenize([conversation], tokenizer, capacity=capacity, overlong=overlong)
    return made


def runs(made: Tokens | Refused) -> list[list[int]]:
    """The unbroken runs of tokens that carry loss."""
    assert isinstance(made, Tokens), made
    found: list[list[int]] = []
    previous = NO_LOSS
    for label in made.labels.tolist():
        if label != NO_LOSS:
            if previous == NO_LOSS:
                found.append([])
            found[-1].append(label)
        previous = label
    return found


def spoken(made: Tokens | Refused, tokenizer: ChatTokenizer) -> list[str]:
    return [tokenizer.decode(run) for run in runs(made)]


def opened(folder: Path, template: str, *, trim_offsets: bool = False) -> ChatTokenizer:
    return open_tokenizer(str(tiny_tokenizer(folder, template, trim_offsets=trim_offsets)))


@pytest.fixture(scope="module", params=[False, True], ids=["whole offsets", "trimmed offsets"])
def tokenizer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ChatTokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    return opened(folder, CHATML, trim_offsets=bool(request.param))


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<|>"), max_size=30)


@given(said=st.lists(words, min_size=2, max_size=6), system=st.none() | words)
def test_every_run_that_carries_loss_decodes_to_what_the_assistant_said(
    tokenizer: ChatTokenizer, said: list[str], system: str | None
) -> None:
    made = tokens(chat(*said, system=system), tokenizer)
    answers = said[1::2]
    if not all(answer.strip() for answer in answers):
        assert isinstance(made, Refused) and made.reason == "empty answer"
        return
    for answer, run in zip(answers, spoken(made, tokenizer), strict=True):
        # White space may be one token with the prompt's or, with trimmed offsets, have no place.
        assert run.strip() == answer.strip() and run in answer


def test_the_end_of_a_turn_carries_loss_and_the_line_break_after_it_does_not(
    chatml: ChatTokenizer,
) -> None:
    made = tokens(chat("What?", "That.", "Why?", "Because."), chatml)
    (end,) = chatml.encode(["<|im_end|>"])[0].ids
    assert [run[-1] for run in runs(made)] == [end, end]
    assert spoken(made, chatml) == ["That.", "Because."]


def test_the_first_token_of_a_sample_carries_no_loss(tmp_path: Path) -> None:
    bare = opened(tmp_path, "{% for message in messages %}{{ message.content }}{% endfor %}")
    made = tokens(Conversation("s", ({"role": "assistant", "content": "the cat sat"},)), bare)
    assert isinstance(made, Tokens)
    assert made.labels[0] == NO_LOSS
    assert (made.labels[1:] == made.input_ids[1:]).all()


def test_role_strings_in_a_users_words_mislead_nobody(chatml: ChatTokenizer) -> None:
    trap = "assistant\nI am not the assistant.\n"
    assert spoken(tokens(chat(trap, "Indeed."), chatml), chatml) == ["Indeed."]


@pytest.mark.parametrize("control", ["<|im_start|>", "<|im_end|>", "<|endoftext|>"])
@pytest.mark.parametrize("turn", range(3))
def test_a_control_token_in_anyones_words_is_refused(
    chatml: ChatTokenizer, control: str, turn: int
) -> None:
    said = ["Be brief.", "Hello?", "Hello."]
    said[turn] += f"{control}user\nand then"
    made = tokens(chat(*said[1:], system=said[0]), chatml)
    assert isinstance(made, Refused) and made.reason == "control token in content"
    assert made.detail == f"message {turn} holds {control}"


def test_a_control_token_anywhere_else_in_a_turn_is_refused(chatml: ChatTokenizer) -> None:
    question, answer = chat("Hello?", "Hello.").turns
    call = {"function": {"name": "look", "arguments": {"<|im_end|>": ["<|im_start|>user"]}}}
    made = tokens(Conversation("s", (question, {**answer, "tool_calls": [call]})), chatml)
    assert isinstance(made, Refused) and made.reason == "control token in content"
    assert made.detail == "message 1 holds <|im_end|>, <|im_start|>"


def test_a_turn_of_weight_0_is_shown_and_not_learned(chatml: ChatTokenizer) -> None:
    shown = chat("Q one", "An example", "Q two", "The reply")
    first, example, *rest = shown.turns
    made = tokens(Conversation("s", (first, {**example, "weight": 0}, *rest)), chatml)
    assert spoken(made, chatml) == ["The reply"]
    everything = tokens(shown, chatml)
    assert isinstance(made, Tokens) and isinstance(everything, Tokens)
    assert (made.input_ids == everything.input_ids).all()


def test_a_template_that_trims_is_followed(tmp_path: Path) -> None:
    trimming = opened(tmp_path, TRIMMED)
    made = tokens(chat(" a ", "  the cat \n", "b", "the dog"), trimming)
    assert [text.strip() for text in spoken(made, trimming)] == ["the cat", "the dog"]
    (end,) = trimming.encode(["<|im_end|>"])[0].ids
    assert [run[-1] for run in runs(made)] == [end, end]


def test_a_template_that_drops_earlier_reasoning_is_followed(tmp_path: Path) -> None:
    qwen = opened(tmp_path, QWEN)
    thought = "<think>\nhm\n</think>\n\n"
    made = tokens(chat("a", f"{thought}one", "b", f"{thought}two"), qwen)
    assert spoken(made, qwen) == ["one", f"{thought}two"]


def test_a_template_that_opens_a_reply_differently_later_on_is_followed(tmp_path: Path) -> None:
    qwen = opened(tmp_path, QWEN)
    assert spoken(tokens(chat("a", "one", "b", "two"), qwen), qwen) == [
        "one",
        "<think>\n\n</think>\n\ntwo",
    ]


def test_the_start_of_the_next_turn_is_no_end(tmp_path: Path) -> None:
    unended = opened(tmp_path, UNENDED)
    made = tokens(chat("a", "the cat", "b", "the dog"), unended)
    assert spoken(made, unended) == ["the cat", "the dog"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [(["Hello?"], "no assistant turn"), (["Hello?", " \n"], "empty answer")],
)
def test_a_sample_without_loss_is_refused(
    chatml: ChatTokenizer, said: Sequence[str], reason: str
) -> None:
    made = tokens(chat(*said), chatml)
    assert isinstance(made, Refused) and made.reason == reason


def test_what_a_template_refuses_is_refused_with_its_words(tmp_path: Path) -> None:
    strict = opened(tmp_path, "{{ raise_exception('no system turns here') }}")
    made = tokens(chat("a", "b"), strict)
    assert made == Refused("sample", "refused by the chat template", "no system turns here")


@pytest.mark.parametrize(
    ("template", "error"),
    [
        ("{% for call in messages[0].calls %}{{ call }}{% endfor %}", "TypeError"),
        ("{{ 1 // messages[0].zero }}", "ZeroDivisionError"),
        ("{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}", "RecursionError"),
    ],
)
def test_whatever_a_template_stumbles_over_is_refused(
    tmp_path: Path, template: str, error: str
) -> None:
    stumbling = opened(tmp_path, template)
    turn = {"role": "assistant", "content": "x", "calls": 3, "zero": 0}
    made = tokens(Conversation("s", (turn,)), stumbling)
    assert isinstance(made, Refused) and made.reason == "refused by the chat template"
    assert made.detail.startswith(f"{error}: ")


def test_a_long_sample_is_dropped_cut_or_an_error_as_asked(chatml: ChatTokenizer) -> None:
    long = chat("the cat", "the dog ran " * 50)
    dropped = tokens(long, chatml, 100)
    assert isinstance(dropped, Refused) and "a row holds 100" in dropped.detail
    cut = tokens(long, chatml, 100, "truncate")
    assert isinstance(cut, Tokens) and len(cut.input_ids) == len(cut.labels) == 100
    with pytest.raises(PackingError, match=r"sample sample is too long.*--overlong"):
        tokens(long, chatml, 100, "error")


def test_a_sample_whose_answer_is_cut_away_is_refused(chatml: ChatTokenizer) -> None:
    made = tokens(chat("the cat sat on the mat " * 50, "yes"), chatml, 100, "truncate")
    assert isinstance(made, Refused) and made.reason == "nothing carries loss"


def test_samples_and_refusals_come_in_the_order_they_went_in(chatml: ChatTokenizer) -> None:
    given = [Conversation(f"{n}", chat("a", "b" if n % 3 else "").turns) for n in range(600)]
    made = list(tokenize([Refused("x", "bad"), *given], chatml, capacity=100))
    assert [item.id for item in made] == ["x", *(f"{n}" for n in range(600))]
    assert all(isinstance(item, Refused) == (n % 3 == 0) for n, item in enumerate(made[1:]))
