"""Attention over a packed row: each sample attends to itself alone, causally.

One function, whatever computes it. The backend here runs PyTorch's scaled-dot-product attention
sample by sample: it never touches the area between samples, works on every device and dtype, and
gives each sample the very bits it would get in any other row. It launches one kernel a sample, so a
row of hundreds of short samples is slow on a GPU. Boundaries are given, never guessed from shapes.

Shapes: T tokens of one row, H query heads, G key-value heads (H is a multiple of G), D head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

__all__ = ["packed_attention"]


def packed_attention(
    q_HTD: Tensor,
    k_GTD: Tensor,
    v_GTD: Tensor,
    seq_lengths: Sequence[int],
    *,
    scale: float | None = None,
) -> Tensor:
    """Block-diagonal causal attention, H x T x D; differentiable.

    `seq_lengths` are the samples' tokens in turn, each >= 1, T in sum; `scale` multiplies the
    scores, 1 / sqrt(D) if None. ValueError when shapes and lengths do not fit together.
    """
    check_packed(q_HTD, k_GTD, v_GTD, seq_lengths)
    lengths = list(seq_lengths)
    outs_HTD = [
        scaled_dot_product_attention(
            q_1HTD, k_1GTD, v_1GTD, is_causal=True, scale=scale, enable_gqa=True
        )
        for q_1HTD, k_1GTD, v_1GTD in zip(
            torch.split(q_HTD[None], lengths, dim=2),
            torch.split(k_GTD[None], lengths, dim=2),
            torch.split(v_GTD[None], lengths, dim=2),
            strict=True,
        )
    ]
    return torch.cat(outs_HTD, dim=2)[0]


def check_packed(q_HTD: Tensor, k_GTD: Tensor, v_GTD: Tensor, seq_lengths: Sequence[int]) -> None:
    """ValueError unless the tensors are one packed row of samples of these lengths."""
    H, T, D = q_HTD.shape
    G = k_GTD.shape[0]
    if k_GTD.shape != (G, T, D) or v_GTD.shape != k_GTD.shape or H % G:
        raise ValueError(
            f"q {tuple(q_HTD.shape)}, k {tuple(k_GTD.shape)} and v {tuple(v_GTD.shape)} are not "
            f"one packed row of H x T x D, with key-value heads that divide the query heads"
        )
    if sum(seq_lengths) != T or min(seq_lengths, default=1) < 1:
        raise ValueError(f"samples of {list(seq_lengths)} tokens do not make a row of {T}")
