"""Triton kernels for a few queries that read many tokens, on a GPU; `folded` and `qformer_layers` have the torch forms.

`attend`: keys and values are the raw tokens, shared by all heads (multi-query attention whose head is as wide as a
token, 1408 for the Q-Former), which no stock kernel takes. All scores of a row stay in registers:

    forward     P = softmax(side X^T + hidden),              read   = P X
    backward    dP = dread X^T, dS = P (dP - sum P dP),      dside  = dS X

so both are one kernel with another middle; X is read twice and the scores never leave the chip except P itself, which
the backward needs. Tokens are frozen: they have no gradient. Their rows are taken by index from all the features that
are resident, so that a batch is never copied together.

`among`: self-attention of at most 64 queries, a program for each task and head, straight from the packed product.

Shape legend: B tasks, Q queries, G groups of heads and members, R = G Q rows of a task, T tokens, D token width,
N = M B, H heads, e head width. Sums are fp32, operands bf16 or fp16.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

MOST_TOKENS = 512
MOST_QUERIES = 64
_SHARED_BYTES = 216 * 1024  # for tiles in flight, of the 227 KB that a block of a Hopper GPU may have


@triton.jit
def _attend(
    side, tokens, rows, hidden, probs, out, R, Q, T, D,
    s_g, s_b, s_q, o_g, o_b, o_q,
    MAIN: tl.constexpr, TAIL: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr,
    BACKWARD: tl.constexpr, STAGES: tl.constexpr,
):
    b = tl.program_id(0).to(tl.int64)
    r = tl.program_id(1) * BLOCK_R + tl.arange(0, BLOCK_R)
    live = r < R
    group, query = (r // Q).to(tl.int64), (r % Q).to(tl.int64)
    x = tokens + tl.load(rows + b).to(tl.int64) * T * D
    main, tail = tl.arange(0, MAIN), MAIN + tl.arange(0, TAIL)  # T is rarely a power of two
    mine = side + group * s_g + b * s_b + query * s_q
    first = tl.zeros((BLOCK_R, MAIN), tl.float32)
    last = tl.zeros((BLOCK_R, TAIL), tl.float32)
    for k in tl.range(0, D, BLOCK_K, num_stages=STAGES):
        c = k + tl.arange(0, BLOCK_K)
        a = tl.load(mine[:, None] + c[None, :], mask=live[:, None] & (c < D)[None, :], other=0.0)
        x_main = tl.load(x + main[:, None] * D + c[None, :], mask=(main < T)[:, None] & (c < D)[None, :], other=0.0)
        x_tail = tl.load(x + tail[:, None] * D + c[None, :], mask=(tail < T)[:, None] & (c < D)[None, :], other=0.0)
        first = tl.dot(a, tl.trans(x_main), first)
        last = tl.dot(a, tl.trans(x_tail), last)
    p = probs + (b * R + r)[:, None] * (MAIN + TAIL)
    if BACKWARD:
        p_main = tl.load(p + main[None, :], mask=live[:, None], other=0.0).to(tl.float32)
        p_tail = tl.load(p + tail[None, :], mask=live[:, None], other=0.0).to(tl.float32)
        mean = tl.sum(p_main * first, 1) + tl.sum(p_tail * last, 1)
        first = p_main * (first - mean[:, None])
        last = p_tail * (last - mean[:, None])
    else:
        first += tl.load(hidden + b * T + main, mask=main < T, other=-float("inf"))[None, :]
        last += tl.load(hidden + b * T + tail, mask=tail < T, other=-float("inf"))[None, :]
        top = tl.maximum(tl.max(first, 1), tl.max(last, 1))
        top = tl.where(top == -float("inf"), 0.0, top)  # a task without tokens reads nothing
        first, last = tl.exp(first - top[:, None]), tl.exp(last - top[:, None])
        total = tl.maximum(tl.sum(first, 1) + tl.sum(last, 1), 1e-30)
        first, last = first / total[:, None], last / total[:, None]
        tl.store(p + main[None, :], first.to(probs.dtype.element_ty), mask=live[:, None])
        tl.store(p + tail[None, :], last.to(probs.dtype.element_ty), mask=live[:, None])
    left, right = first.to(out.dtype.element_ty), last.to(out.dtype.element_ty)
    theirs = out + group * o_g + b * o_b + query * o_q
    # Backwards: what the first product read last is still in the cache.
    for n in tl.range(0, D, BLOCK_N, num_stages=STAGES):
        c = (D - 1) // BLOCK_N * BLOCK_N - n + tl.arange(0, BLOCK_N)
        x_main = tl.load(x + main[:, None] * D + c[None, :], mask=(main < T)[:, None] & (c < D)[None, :], other=0.0)
        x_tail = tl.load(x + tail[:, None] * D + c[None, :], mask=(tail < T)[:, None] & (c < D)[None, :], other=0.0)
        found = tl.dot(left, x_main)
        found = tl.dot(right, x_tail, found)
        tl.store(
            theirs[:, None] + c[None, :], found.to(out.dtype.element_ty), mask=live[:, None] & (c < D)[None, :]
        )


def _split(tokens: int) -> tuple[int, int]:
    """A power of two and a rest, each at least 16, that hold all tokens with little waste."""
    main = 16
    while main * 2 <= tokens:
        main *= 2
    return main, max(16, triton.next_power_of_2(max(tokens - main, 1)))


def _launch(side: Tensor, tokens: Tensor, rows: Tensor, hidden: Tensor, probs: Tensor, *, backward: bool) -> Tensor:
    groups, batch, queries, width = side.shape
    main, tail = _split(tokens.shape[1])
    out = torch.empty((groups, batch, queries, width), dtype=tokens.dtype, device=side.device)
    cells = groups * queries
    block = 128 if main + tail <= 288 else 64
    stages = min(4, _SHARED_BYTES // (64 * tokens.element_size() * (block + main + tail)))
    _attend[(batch, triton.cdiv(cells, block))](
        side, tokens, rows, hidden, probs, out, cells, queries, tokens.shape[1], width,
        side.stride(0), side.stride(1), side.stride(2), out.stride(0), out.stride(1), out.stride(2),
        MAIN=main, TAIL=tail, BLOCK_R=block, BLOCK_K=64, BLOCK_N=64, BACKWARD=backward, STAGES=stages, num_warps=8,
    )
    return out


@torch.library.custom_op("polyvox::attend", mutates_args=())
def attend(side: Tensor, tokens: Tensor, rows: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """`side` (G, B, Q, D), all resident `tokens` (N, T, D), `rows` (B,) of them, `hidden` (B, T) fp32 added to the
    scores -> what was read (G, B, Q, D) and the probabilities (B, G Q, T and padding)."""
    main, tail = _split(tokens.shape[1])
    shape = (side.shape[1], side.shape[0] * side.shape[2], main + tail)
    probs = torch.empty(shape, dtype=tokens.dtype, device=side.device)
    side = side if side.stride(3) == 1 else side.contiguous()
    return _launch(side, tokens, rows, hidden, probs, backward=False), probs


@attend.register_fake
def _(side: Tensor, tokens: Tensor, rows: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
    main, tail = _split(tokens.shape[1])
    shape = (side.shape[1], side.shape[0] * side.shape[2], main + tail)
    return torch.empty(side.shape, dtype=tokens.dtype, device=side.device), tokens.new_empty(shape)


@torch.library.custom_op("polyvox::attend_backward", mutates_args=())
def attend_backward(grad: Tensor, tokens: Tensor, rows: Tensor, probs: Tensor) -> Tensor:
    """Gradient of `side` from that of what was read, (G, B, Q, D)."""
    grad = grad if grad.stride(3) == 1 else grad.contiguous()
    return _launch(grad, tokens, rows, probs, probs, backward=True)


@attend_backward.register_fake
def _(grad: Tensor, tokens: Tensor, rows: Tensor, probs: Tensor) -> Tensor:
    return torch.empty(grad.shape, dtype=tokens.dtype, device=grad.device)


def _keep(ctx, inputs, output) -> None:
    _, tokens, rows, _ = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(tokens, rows, output[1])


def _back(ctx, grad: Tensor, _: Tensor) -> tuple[Tensor, None, None, None]:
    tokens, rows, probs = ctx.saved_tensors
    return attend_backward(grad.to(tokens.dtype), tokens, rows, probs), None, None, None


attend.register_autograd(_back, setup_context=_keep)


@triton.jit
def _among(
    packed, grad, out, Q, H, scale, E: tl.constexpr, BLOCK_Q: tl.constexpr, BACKWARD: tl.constexpr,
):
    n, h = tl.program_id(0).to(tl.int64), tl.program_id(1)
    i, c = tl.arange(0, BLOCK_Q), tl.arange(0, E)
    live = (i < Q)[:, None]
    one = H * E
    at = packed + n * Q * 3 * one + i[:, None] * 3 * one + h * E + c[None, :]
    q = tl.load(at, mask=live, other=0.0)
    k = tl.load(at + one, mask=live, other=0.0)
    v = tl.load(at + 2 * one, mask=live, other=0.0)
    scores = tl.dot(q, tl.trans(k)) * scale
    scores = tl.where((i < Q)[None, :], scores, -float("inf"))
    p = tl.exp(scores - tl.max(scores, 1)[:, None])
    p = p / tl.sum(p, 1)[:, None]
    if BACKWARD:
        g = tl.load(grad + n * Q * one + i[:, None] * one + h * E + c[None, :], mask=live, other=0.0)
        to = out + n * Q * 3 * one + i[:, None] * 3 * one + h * E + c[None, :]
        dp = tl.dot(g, tl.trans(v))
        ds = p * (dp - tl.sum(p * dp, 1)[:, None]) * scale
        ds = ds.to(q.dtype)
        tl.store(to, tl.dot(ds, k).to(q.dtype), mask=live)
        tl.store(to + one, tl.dot(tl.trans(ds), q).to(q.dtype), mask=live)
        tl.store(to + 2 * one, tl.dot(tl.trans(p.to(q.dtype)), g).to(q.dtype), mask=live)
    else:
        to = out + n * Q * one + i[:, None] * one + h * E + c[None, :]
        tl.store(to, tl.dot(p.to(q.dtype), v).to(q.dtype), mask=live)


def _among_launch(packed: Tensor, grad: Tensor, out: Tensor, heads: int, *, backward: bool) -> None:
    batch, queries, width = packed.shape
    e = width // (3 * heads)
    block = max(16, triton.next_power_of_2(queries))
    _among[(batch, heads)](
        packed, grad, out, queries, heads, e**-0.5, E=e, BLOCK_Q=block, BACKWARD=backward,
        num_warps=1 if block == 16 else 4,
    )


@torch.library.custom_op("polyvox::among", mutates_args=())
def among(packed: Tensor, heads: int) -> Tensor:
    """Queries, keys and values side by side, (N, Q, 3 H e) -> mixed values (N, Q, H e)."""
    packed = packed.contiguous()
    out = packed.new_empty((*packed.shape[:2], packed.shape[2] // 3))
    _among_launch(packed, out, out, heads, backward=False)
    return out


@among.register_fake
def _(packed: Tensor, heads: int) -> Tensor:
    return packed.new_empty((*packed.shape[:2], packed.shape[2] // 3))


@torch.library.custom_op("polyvox::among_backward", mutates_args=())
def among_backward(grad: Tensor, packed: Tensor, heads: int) -> Tensor:
    """Gradient of `packed`; the probabilities are computed again, which costs less than to keep them."""
    packed = packed.contiguous()
    out = torch.empty_like(packed)
    _among_launch(packed, grad.contiguous(), out, heads, backward=True)
    return out


@among_backward.register_fake
def _(grad: Tensor, packed: Tensor, heads: int) -> Tensor:
    return torch.empty(packed.shape, dtype=packed.dtype, device=packed.device)


def _keep_packed(ctx, inputs, output) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.heads = inputs[1]


def _back_packed(ctx, grad: Tensor) -> tuple[Tensor, None]:
    (packed,) = ctx.saved_tensors
    return among_backward(grad.to(packed.dtype), packed, ctx.heads), None


among.register_autograd(_back_packed, setup_context=_keep_packed)
