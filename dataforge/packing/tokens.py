"""Turns a conversation into tokens, and marks which of them carry loss.

The chat template renders the whole conversation once and that text is tokenised once, as it will
stand in the row. Where the assistant speaks is found by rendering, never by searching for the
strings a template writes: a turn begins where the text with a reply due ends, and it stops where
the text stops changing when the turn is replaced by another. So templates without generation tags,
templates that trim, and templates that drop earlier reasoning are followed as they rendered; a turn
the template left out carries no loss. Character spans become token spans through offsets. The
control token that ends the turn carries loss, or the model would not learn to stop.

Labels are not shifted: `labels[i]` is `input_ids[i]` or -100, and the first of a sample is -100, so
that a row of samples laid end to end never asks one sample to predict the next.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dataforge.errors import PackingError
from dataforge.packing.conversations import Conversation, Refused, texts
from dataforge.packing.tokenizer import ChatTokenizer, Encoding, Turn

__all__ = ["NO_LOSS", "Overlong", "Span", "Tokens", "assistant_spans", "tokenize"]

NO_LOSS = -100
"""The label of a token that carries no loss, as torch's cross-entropy takes it."""

Overlong = Literal["drop", "truncate", "error"]
"""What becomes of a sample longer than a row."""

Span = tuple[int, int]
"""Characters [start, stop) of a rendered conversation."""

_BATCH = 256
"""Conversations tokenised in one call; the tokenizer spreads them over the cores."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """One sample, ready to be packed."""

    id: str
    input_ids: NDArray[np.int32]
    labels: NDArray[np.int32]
    """`input_ids` where the assistant speaks, else -100; the same length, not shifted."""


def tokenize(
    conversations: Iterable[Conversation | Refused],
    tokenizer: ChatTokenizer,
    *,
    capacity: int,
    overlong: Overlong = "drop",
) -> Iterator[Tokens | Refused]:
    """Each conversation as at most `capacity` tokens, or why it cannot be trained on, in order.

    PackingError at the first one that is too long when `overlong` is `error`.
    """
    pending = iter(conversations)
    while batch := list(islice(pending, _BATCH)):
        rendered = [
            item if isinstance(item, Refused) else _rendered(item, tokenizer) for item in batch
        ]
        texts = [item.text for item in rendered if isinstance(item, _Rendered)]
        encodings = iter(tokenizer.encode(texts))
        for item in rendered:
            if isinstance(item, Refused):
                yield item
            else:
                yield _tokens(item, next(encodings), tokenizer.special, capacity, overlong)


def assistant_spans(turns: Sequence[Turn], text: str, tokenizer: ChatTokenizer) -> list[Span]:
    """Where in `text`, the rendering of `turns`, the assistant speaks and is learned from.

    A turn that the template leaves out has no span, nor has one of weight 0.
    """
    # One character that stands nowhere in the text, so that nothing around the turn matches it.
    probe = next(chr(code) for code in range(0xE000, 0xF900) if chr(code) not in text)
    spans = []
    for number, turn in enumerate(turns):
        if not _is_learned(turn):
            continue
        other = tokenizer.render(
            [*turns[:number], {"role": "assistant", "content": probe}, *turns[number + 1 :]]
        )
        stop = len(text) - _shared_prefix(text[::-1], other[::-1])
        before = tokenizer.render(turns[:number], reply_next=True) if number else ""
        # A template may open a reply otherwise than it renders one; then the change tells.
        follows = before and text.startswith(before)
        start = len(before) if follows else _shared_prefix(text, other)
        if start < stop:
            spans.append((start, stop))
    return spans


@dataclass(frozen=True, slots=True)
class _Rendered:
    id: str
    text: str
    spans: list[Span]


def _is_learned(turn: Turn) -> bool:
    return turn["role"] == "assistant" and turn.get("weight", 1) != 0


def _rendered(conversation: Conversation, tokenizer: ChatTokenizer) -> _Rendered | Refused:
    learned = [turn for turn in conversation.turns if _is_learned(turn)]
    if not learned:
        return Refused(conversation.id, "no assistant turn")
    if any(not str(turn["content"]).strip() and not turn.get("tool_calls") for turn in learned):
        return Refused(conversation.id, "empty answer")
    for number, turn in enumerate(conversation.turns):
        # Encoded, it would open or end a turn that nobody took.
        said = list(texts(turn))
        found = {
            control for control in tokenizer.special.values() if any(control in t for t in said)
        }
        if found:
            detail = f"message {number} holds {', '.join(sorted(found))}"
            return Refused(conversation.id, "control token in content", detail)
    try:
        text = tokenizer.render(conversation.turns)
        spans = assistant_spans(conversation.turns, text, tokenizer)
    except PackingError as error:
        return Refused(conversation.id, "refused by the chat template", str(error))
    return _Rendered(conversation.id, text, spans)


def _tokens(
    rendered: _Rendered,
    encoding: Encoding,
    special: Container[int],
    capacity: int,
    overlong: Overlong,
) -> Tokens | Refused:
    ids = encoding.ids
    if len(ids) > capacity and overlong != "truncate":
        detail = f"{len(ids)} tokens; a row holds {capacity}"
        if overlong == "error":
            raise PackingError(
                f"sample {rendered.id} is too long: {detail}. Raise --capacity, or choose "
                f"--overlong drop or truncate"
            )
        return Refused(rendered.id, "longer than a row", detail)
    input_ids = np.array(ids, dtype=np.int32)
    labels = np.full(len(ids), NO_LOSS, dtype=np.int32)
    for start, stop in _token_spans(rendered, encoding, special):
        labels[start:stop] = input_ids[start:stop]
    labels[:1] = NO_LOSS
    input_ids, labels = input_ids[:capacity], labels[:capacity]
    if (labels == NO_LOSS).all():
        return Refused(rendered.id, "nothing carries loss")
    return Tokens(rendered.id, input_ids, labels)


def _token_spans(
    rendered: _Rendered, encoding: Encoding, special: Container[int]
) -> Iterator[Span]:
    """The tokens of each span, and the control token that ends it where there is one.

    A token that straddles the start belongs to the prompt; one that straddles the stop is spoken.
    """
    ids = encoding.ids
    offsets = encoding.offsets
    starts = [start for start, _ in offsets]
    for start, stop in rendered.spans:
        first = bisect_left(starts, start)
        # Offsets that leave out white space make a blank token before the span end at its start.
        while first < len(ids) and offsets[first][1] <= start:
            first += 1
        last = bisect_left(starts, stop, lo=first)
        end = last
        while end < len(ids) and ids[end] not in special and _blank(rendered.text, offsets[end]):
            end += 1
        yield first, end + 1 if end < len(ids) and ids[end] in special else last


def _blank(text: str, span: Span) -> bool:
    # Spaces only: a control token on the next line opens another turn.
    return not text[span[0] : span[1]].strip(" ")


def _shared_prefix(one: str, two: str) -> int:
    """How many characters two texts begin alike."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == two[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
