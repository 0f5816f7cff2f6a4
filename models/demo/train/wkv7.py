"""The recurrence of RWKV-7 as a differentiable function: a CUDA kernel on a GPU, a plain loop elsewhere.

The plain loop is the judge: `check_gradients` compares the kernel with it in float64.
"""
from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from typing import NamedTuple

import torch
from torch import Tensor

from layout import CHUNK

HEAD_SIZE = 64


class Documents(NamedTuple):
    """Where the documents of a stream lie, in tokens; entries of length zero are allowed."""
    first: Tensor
    count: Tensor


def wkv7_plain(documents: Documents, r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """[tokens, heads, 64] each; the equations stand in wkv7.cu."""
    outputs = []
    for first, count in zip(documents.first.tolist(), documents.count.tolist()):
        state = r.new_zeros(r.shape[1], HEAD_SIZE, HEAD_SIZE)
        for t in range(first, first + count):
            removed = torch.einsum("hij,hj->hi", state, a[t])
            state = state * w[t][:, None, :] + removed[:, :, None] * b[t][:, None, :] + v[t][:, :, None] * k[t][:, None,
                                                                                                                :]
            outputs.append(torch.einsum("hij,hj->hi", state, r[t]))
    return torch.stack(outputs)


class _Kernel:
    """The compiled wkv7.cu; nvcc builds it at first use."""

    def __init__(self) -> None:
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wkv7.cu")
        library = os.path.join(tempfile.mkdtemp(prefix="wkv7-"), "wkv7.so")
        major, minor = torch.cuda.get_device_capability()
        subprocess.run(["nvcc", "-O3", "--use_fast_math", f"-arch=sm_{major}{minor}", "-shared", "-Xcompiler", "-fPIC",
                        "-o", library, source], check=True)
        self._library = ctypes.CDLL(library)

    def launch(self, name: str, documents: Documents, heads: int, *tensors: Tensor) -> None:
        """Launches on the current stream; raises when CUDA refuses."""
        for t in tensors:
            assert t.is_contiguous() and t.dtype == torch.float32
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (documents.first, documents.count, *tensors)]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        error = getattr(self._library, name)(stream, len(documents.first), heads, *pointers)
        if error != 0:
            raise RuntimeError(f"{name}: CUDA error {error}")


_kernel: _Kernel | None = None


def _get_kernel() -> _Kernel:
    global _kernel
    if _kernel is None:
        _kernel = _Kernel()
    return _kernel


class _Wkv7(torch.autograd.Function):
    @staticmethod
    def forward(ctx, first, count, r, w, k, v, a, b):  # type: ignore[no-untyped-def]
        tokens, heads, _ = r.shape
        y, removed = torch.empty_like(r), torch.empty_like(r)
        states = r.new_empty(tokens // CHUNK, heads, HEAD_SIZE, HEAD_SIZE)
        documents = Documents(first, count)
        _get_kernel().launch("launch_forward", documents, heads, r, w, k, v, a, b, y, removed, states)
        ctx.save_for_backward(first, count, r, w, k, v, a, b, removed, states)
        return y

    @staticmethod
    def backward(ctx, dy):  # type: ignore[no-untyped-def]
        first, count, *tensors = ctx.saved_tensors
        r, w, k, v, a, b, removed, states = tensors
        gradients = [torch.empty_like(r) for _ in range(6)]
        _get_kernel().launch("launch_backward", Documents(first, count), r.shape[1], r, w, k, v, a, b,
                             dy.contiguous(), removed, states, *gradients)
        return None, None, *gradients


def wkv7(documents: Documents, r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """y of wkv7.cu for a stream of documents, differentiable in all six inputs."""
    if r.is_cuda:
        inputs = [x.float().contiguous() for x in (r, w, k, v, a, b)]
        return _Wkv7.apply(documents.first, documents.count, *inputs)
    return wkv7_plain(documents, r, w, k, v, a, b)


def check_gradients(device: str = "cuda") -> float:
    """Largest relative error of the kernel's output and six gradients against the plain loop in float64."""
    torch.manual_seed(5)
    counts = [48, 0, 16, 160, 32]
    tokens, heads = sum(counts), 3
    firsts = [sum(counts[:i]) for i in range(len(counts))]
    shape = (tokens, heads, HEAD_SIZE)
    kk = torch.nn.functional.normalize(torch.randn(shape), dim=-1)
    rate = torch.rand(shape)
    decay = torch.exp(-0.606531 * torch.sigmoid(4 * torch.randn(shape)))
    values = [torch.randn(shape), decay, torch.randn(shape), torch.randn(shape), -kk, kk * rate]
    weights = torch.randn(shape)

    def run(dtype: torch.dtype, where: str) -> list[Tensor]:
        documents = Documents(torch.tensor(firsts, dtype=torch.int32, device=where),
                              torch.tensor(counts, dtype=torch.int32, device=where))
        leaves = [x.to(where, dtype).requires_grad_() for x in values]
        y = wkv7(documents, *leaves)
        (y * weights.to(where, dtype)).sum().backward()
        return [y.detach().cpu().double()] + [x.grad.cpu().double() for x in leaves]

    wanted, got = run(torch.float64, "cpu"), run(torch.float32, device)
    return max(float((g - w).norm() / w.norm()) for g, w in zip(got, wanted))
