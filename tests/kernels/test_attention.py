"""Packed attention against its float64 reference, and samples that cannot see each other."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dataforge.kernels.attention import packed_attention
from dataforge.kernels.reference import reference_attention


def drawn(lengths: list[int], H: int, G: int, D: int, seed: int = 0) -> tuple[Tensor, ...]:
    """q, k, v of one packed row, and the gradient of its output."""
    draws = torch.Generator().manual_seed(seed)
    T = sum(lengths)
    return tuple(
        torch.randn(heads, T, D, generator=draws, requires_grad=True) for heads in (H, G, G, H)
    )


some_lengths = st.lists(st.integers(1, 33), min_size=1, max_size=6)
some_heads = st.sampled_from([(1, 1), (4, 4), (4, 2), (6, 1), (9, 3)])


@given(lengths=some_lengths, heads=some_heads, D=st.sampled_from([8, 16]))
def test_output_and_gradients_are_those_of_the_reference(
    lengths: list[int], heads: tuple[int, int], D: int
) -> None:
    q, k, v, out_grad = drawn(lengths, *heads, D)
    out = packed_attention(q, k, v, lengths)
    want, _ = reference_attention(q, k, v, lengths)
    torch.testing.assert_close(out.double(), want, rtol=1e-4, atol=1e-5)
    grads = torch.autograd.grad(out, (q, k, v), out_grad)
    wants = torch.autograd.grad(want, (q, k, v), out_grad.double())
    for grad, expected in zip(grads, wants, strict=True):
        torch.testing.assert_close(grad, expected, rtol=1e-3, atol=1e-4, check_dtype=False)


def test_gradients_are_those_of_finite_differences() -> None:
    q, k, v, _ = (x.double().detach().requires_grad_() for x in drawn([3, 1, 4], 4, 2, 4))

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return packed_attention(q, k, v, [3, 1, 4])

    assert torch.autograd.gradcheck(attend, (q, k, v))


@given(lengths=st.lists(st.integers(1, 20), min_size=2, max_size=5), data=st.data())
def test_changing_one_sample_leaves_every_bit_of_the_others(
    lengths: list[int], data: st.DataObject
) -> None:
    changed = data.draw(st.integers(0, len(lengths) - 1))
    q, k, v, out_grad = drawn(lengths, 4, 2, 8)
    start = sum(lengths[:changed])
    stop = start + lengths[changed]

    def outcome(scale: float) -> list[Tensor]:
        """Output and gradients with the changed sample's part cut out."""
        inputs = [x.detach().clone() for x in (q, k, v)]
        for x in inputs:
            x[:, start:stop] *= scale
            x.requires_grad_()
        out = packed_attention(inputs[0], inputs[1], inputs[2], lengths)
        grads = torch.autograd.grad(out, inputs, out_grad)
        return [torch.cat([x[:, :start], x[:, stop:]], dim=1) for x in (out, *grads)]

    for before, after in zip(outcome(1.0), outcome(-3.0), strict=True):
        assert torch.equal(before, after)


def test_a_packed_sample_has_the_bits_it_has_alone() -> None:
    lengths = [7, 1, 30, 2]
    q, k, v, _ = drawn(lengths, 4, 2, 16)
    together = torch.split(packed_attention(q, k, v, lengths), lengths, dim=1)
    parts = (torch.split(x, lengths, dim=1) for x in (q, k, v))
    alone = [
        packed_attention(q, k, v, [length]) for length, q, k, v in zip(lengths, *parts, strict=True)
    ]
    assert all(torch.equal(one, other) for one, other in zip(together, alone, strict=True))


def test_the_scale_is_used() -> None:
    q, k, v, _ = drawn([5, 3], 2, 2, 8)
    want, _ = reference_attention(q, k, v, [5, 3], scale=0.9)
    out = packed_attention(q, k, v, [5, 3], scale=0.9)
    torch.testing.assert_close(out.double(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lengths", [[3, 4], [9], [8, 0], []])
def test_lengths_that_do_not_make_the_row_are_refused(lengths: list[int]) -> None:
    q, k, v, _ = drawn([8], 2, 1, 8)
    with pytest.raises(ValueError, match="do not make a row of 8"):
        packed_attention(q, k, v, lengths)


def test_shapes_that_do_not_fit_together_are_refused() -> None:
    q, k, v, _ = drawn([8], 3, 2, 8)
    with pytest.raises(ValueError, match="not one packed row"):
        packed_attention(q, k, v, [8])
