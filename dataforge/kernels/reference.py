"""Packed attention spelt out in float64: the yardstick that every backend is measured against.

It builds the whole T x T matrix and takes the softmax by its definition, so it is slow and large,
and there is nothing in it to get wrong. For tests and benchmarks only.

Shapes: T tokens of one row, H query heads, G key-value heads (H is a multiple of G), D head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dataforge.kernels.attention import check_packed

__all__ = ["reference_attention"]


def reference_attention(
    q_HTD: Tensor,
    k_GTD: Tensor,
    v_GTD: Tensor,
    seq_lengths: Sequence[int],
    *,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Output, H x T x D, and log-sum-exp of the scores, H x T, both float64; differentiable."""
    check_packed(q_HTD, k_GTD, v_GTD, seq_lengths)
    H, T, D = q_HTD.shape
    repeat = H // k_GTD.shape[0]
    k_HTD = k_GTD.double().repeat_interleave(repeat, dim=0)
    v_HTD = v_GTD.double().repeat_interleave(repeat, dim=0)
    sample_T = torch.repeat_interleave(torch.tensor(list(seq_lengths))).to(q_HTD.device)
    token_T = torch.arange(T, device=q_HTD.device)
    seen_TT = (sample_T[:, None] == sample_T) & (token_T[:, None] >= token_T)
    scores_HTT = q_HTD.double() @ k_HTD.mT * (D**-0.5 if scale is None else scale)
    scores_HTT = scores_HTT.masked_fill(~seen_TT, -torch.inf)
    lse_HT = scores_HTT.logsumexp(-1)
    return (scores_HTT - lse_HT[..., None]).exp() @ v_HTD, lse_HT
