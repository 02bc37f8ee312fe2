"""Plugs packed attention into any transformers model that looks attention up by name.

transformers passes what it does not know through to the attention function, so a row's boundaries
travel as `model(..., seq_lengths=…)`. Its own backends leak between packed samples unless positions
are given, the cache is off and no mask is passed; here a call without boundaries is refused, and so
is every variant of attention that would be computed wrongly in silence.

Shapes: B rows (always 1), T tokens, H query heads, G key-value heads, D head size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor, nn

from dataforge.errors import TrainingError
from dataforge.kernels.attention import packed_attention

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["use_packed_attention"]

_NAME = "dataforge_packed"

_TWISTS = ("s_aux", "position_bias")
"""What some models hand to attention and plain softmax would leave out."""


def use_packed_attention(model: PreTrainedModel) -> None:
    """Makes `model` attend within samples only; call it with one row, `position_ids`,
    `use_cache=False` and `seq_lengths`. TrainingError for a model whose attention is its own.
    """
    # Imported here: it takes seconds.
    from transformers import AttentionInterface

    if not getattr(model, "_supports_attention_backend", False):
        raise TrainingError(
            f"{type(model).__name__} computes attention by itself and would mix packed samples; "
            f"train another model"
        )
    # Under a name that has no mask of its own, transformers makes none.
    AttentionInterface.register(_NAME, _attend)
    model.set_attn_implementation(_NAME)


def _attend(
    module: nn.Module,
    q_BHTD: Tensor,
    k_BGTD: Tensor,
    v_BGTD: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    seq_lengths: Sequence[int] | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **others: object,
) -> tuple[Tensor, None]:
    """Called by every attention layer; B x T x H x D, and no attention weights."""
    if seq_lengths is None:
        raise ValueError("packed attention needs the row's boundaries: model(..., seq_lengths=…)")
    if q_BHTD.shape[0] != 1 or q_BHTD.shape[2] != k_BGTD.shape[2] or attention_mask is not None:
        raise ValueError("packed attention takes one row at a time, no cache and no mask")
    if dropout:
        raise TrainingError("this model was made with attention dropout; set it to 0 to train it")
    twists = {"softcap": softcap, **{name: others.get(name) for name in _TWISTS}}
    for name, twist in twists.items():
        if twist is not None:
            raise TrainingError(f"this model's attention has {name}, which is not supported")
    if sliding_window is not None and max(seq_lengths) > sliding_window:
        raise TrainingError(
            f"this model attends within {sliding_window} tokens and a sample has "
            f"{max(seq_lengths)}; pack with --capacity {sliding_window}"
        )
    out_HTD = packed_attention(q_BHTD[0], k_BGTD[0], v_BGTD[0], seq_lengths, scale=scaling)
    return out_HTD.transpose(0, 1)[None], None
