"""RWKV-7 for training: the equations over a packed stream of documents, official initialisation, BlinkDL names.

The parameters' names and shapes are those of the checkpoint, so saving is a plain copy of the state dict.
"""
from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wkv7 import HEAD_SIZE, Documents, wkv7

LN_X_EPS = 64e-5
DECAY_SCALE = math.exp(-0.5)  # log of the decay lies in (-DECAY_SCALE, 0)


class Shape(NamedTuple):
    """Sizes of a model; the feed-forward part is four times as wide as the residual stream."""
    vocabulary: int
    width: int = 256
    layers: int = 6


def low_rank(width: int, factor: float) -> int:
    """The official width of a low-rank pair."""
    return max(32, round(factor * width ** 0.5 / 32) * 32)


class Stream(NamedTuple):
    """What a batch says about its tokens besides their ids."""
    documents: Documents
    continues: Tensor  # [tokens, 1] float: 0 at the first token of a document, else 1


def shifted(x: Tensor, continues: Tensor) -> Tensor:
    """The previous token of the same document minus this one; the previous of the first token is zero."""
    previous = F.pad(x, (0, 0, 1, 0))[:-1]
    return previous * continues - x


class TimeMix(nn.Module):
    def __init__(self, shape: Shape, layer: int) -> None:
        super().__init__()
        C = shape.width
        depth = layer / max(1, shape.layers - 1)  # 0 .. 1
        rest = 1 - layer / shape.layers           # 1 .. almost 0
        channel = torch.arange(C) / C
        for name, power in (("r", 0.2), ("w", 0.9), ("k", 0.7), ("v", 0.7), ("a", 0.9), ("g", 0.2)):
            self.register_parameter("x_" + name, nn.Parameter((1 - channel ** (power * rest)).reshape(1, 1, C)))

        line = torch.arange(C) / (C - 1) - 0.5
        within = (torch.arange(C) % HEAD_SIZE - (HEAD_SIZE - 1) / 2) / ((HEAD_SIZE - 1) / 2)
        zigzag = within * within.abs()
        decay = -6 + 6 * (line + 0.5) ** (1 + depth ** 0.3)
        self.is_first = layer == 0
        self._add_pair("w", decay + 0.5 + 2.5 * zigzag, low_rank(C, 2.5))
        self._add_pair("a", -0.19 + 0.3 * zigzag + 0.4 * line, low_rank(C, 2.5))
        if not self.is_first:
            self._add_pair("v", 0.73 - 0.4 * line, low_rank(C, 1.7))
        self._add_pair("g", None, low_rank(C, 5.0))
        self.k_k = nn.Parameter((0.71 - 0.1 * line).reshape(1, 1, C))
        self.k_a = nn.Parameter(torch.full((1, 1, C), 1.02))
        self.r_k = nn.Parameter(torch.full((C // HEAD_SIZE, HEAD_SIZE), -0.04))

        for name, span in (("receptance", 0.5), ("key", 0.05), ("value", 0.5), ("output", 0.0)):
            matrix = nn.Linear(C, C, bias=False)
            nn.init.uniform_(matrix.weight, -span / C ** 0.5, span / C ** 0.5)
            self.add_module(name, matrix)
        self.ln_x = nn.GroupNorm(C // HEAD_SIZE, C, eps=LN_X_EPS)
        nn.init.constant_(self.ln_x.weight, ((1 + layer) / shape.layers) ** 0.7)

    def _add_pair(self, name: str, base: Tensor | None, rank: int) -> None:
        """x -> base + f(x @ name1) @ name2; starts as `base` alone."""
        C = self.x_r.numel()
        if base is not None:
            self.register_parameter(name + "0", nn.Parameter(base.reshape(1, 1, C).float()))
        self.register_parameter(name + "1", nn.Parameter(torch.zeros(C, rank)))
        second = torch.empty(rank, C)
        nn.init.orthogonal_(second, gain=0.1)
        self.register_parameter(name + "2", nn.Parameter(second))

    def prepare(self, x: Tensor, delta: Tensor, v_first: Tensor | None) -> tuple[Tensor, ...]:
        """r, decay, k, v, -kk, kk * a as [tokens, heads, 64], the gate, and the first layer's v."""
        mixed = {n: x + delta * getattr(self, "x_" + n).view(-1) for n in "rwkvag"}
        r = self.receptance(mixed["r"])
        k = self.key(mixed["k"])
        v = self.value(mixed["v"])
        w = self.w0.view(-1) + (torch.tanh(mixed["w"] @ self.w1) @ self.w2).float()
        decay = torch.exp(-DECAY_SCALE * torch.sigmoid(w))
        rate = torch.sigmoid(self.a0.view(-1) + (mixed["a"] @ self.a1 @ self.a2).float())
        gate = torch.sigmoid(mixed["g"] @ self.g1) @ self.g2
        if self.is_first:
            v_first = v
        else:
            v = v + (v_first - v) * torch.sigmoid(self.v0.view(-1) + mixed["v"] @ self.v1 @ self.v2)

        def by_head(t: Tensor) -> Tensor:
            return t.view(len(t), -1, HEAD_SIZE)

        k = k.float()
        kk = F.normalize(by_head(k * self.k_k.view(-1)), dim=-1)
        k = k * (1 + (rate - 1) * self.k_a.view(-1))
        return (by_head(r.float()), by_head(decay), by_head(k), by_head(v.float()), -kk, kk * by_head(rate), gate,
                v_first)

    def read_out(self, y: Tensor, r: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> Tensor:
        """Normalises each head, adds the bonus of the newest token, applies gate and output matrix."""
        centred = y - y.mean(-1, keepdim=True)
        y = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + LN_X_EPS)
        y = y * self.ln_x.weight.view_as(self.r_k) + self.ln_x.bias.view_as(self.r_k)
        y = y + (r * k * self.r_k).sum(-1, keepdim=True) * v
        return self.output(y.flatten(1) * gate)


class ChannelMix(nn.Module):
    def __init__(self, shape: Shape, layer: int) -> None:
        super().__init__()
        C = shape.width
        rest = 1 - layer / shape.layers
        self.x_k = nn.Parameter((1 - (torch.arange(C) / C) ** (rest ** 4)).reshape(1, 1, C))
        self.key = nn.Linear(C, 4 * C, bias=False)
        self.value = nn.Linear(4 * C, C, bias=False)
        nn.init.orthogonal_(self.key.weight, gain=2.0)
        nn.init.zeros_(self.value.weight)

    def forward(self, x: Tensor, delta: Tensor) -> Tensor:
        return self.value(torch.relu(self.key(x + delta * self.x_k.view(-1))).square())


class Block(nn.Module):
    """One layer, cut where the recurrence stands: `before` and `after` are plain token-wise functions."""

    def __init__(self, shape: Shape, layer: int) -> None:
        super().__init__()
        if layer == 0:
            self.ln0 = nn.LayerNorm(shape.width)
        self.ln1 = nn.LayerNorm(shape.width)
        self.ln2 = nn.LayerNorm(shape.width)
        self.att = TimeMix(shape, layer)
        self.ffn = ChannelMix(shape, layer)

    def before(self, x: Tensor, continues: Tensor, v_first: Tensor | None) -> tuple[Tensor, ...]:
        x = self.ln1(x)
        return self.att.prepare(x, shifted(x, continues), v_first)

    def after(self, x: Tensor, continues: Tensor, y: Tensor, r: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> Tensor:
        x = x + self.att.read_out(y, r, k, v, gate)
        normal = self.ln2(x)
        return x + self.ffn(normal, shifted(normal, continues))


class Rwkv7(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.emb = nn.Embedding(shape.vocabulary, shape.width)
        nn.init.uniform_(self.emb.weight, -1e-4, 1e-4)
        self.blocks = nn.ModuleList(Block(shape, i) for i in range(shape.layers))
        self.ln_out = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        nn.init.orthogonal_(self.head.weight, gain=0.5 * max(1.0, (shape.vocabulary / shape.width) ** 0.5))

    def hidden(self, tokens: Tensor, stream: Stream) -> Tensor:
        """[tokens] ids -> [tokens, width], ready for the head."""
        x = self.blocks[0].ln0(self.emb(tokens))
        v_first: Tensor | None = None
        for block in self.blocks:
            r, w, k, v, a, b, gate, v_first = block.before(x, stream.continues, v_first)
            y = wkv7(stream.documents, r, w, k, v, a, b)
            x = block.after(x, stream.continues, y, r, k, v, gate)
        return self.ln_out(x)

    def forward(self, tokens: Tensor, stream: Stream) -> Tensor:
        """Logits [tokens, vocabulary]."""
        return self.head(self.hidden(tokens, stream))

    def compile(self) -> None:  # type: ignore[override]
        """Fuses the token-wise parts; layers of equal shape share the compiled code."""
        for block in self.blocks:
            block.before = torch.compile(block.before, dynamic=False)
            block.after = torch.compile(block.after, dynamic=False)
