"""Reads and writes .safetensors files, and the state of an unfinished training in pieces of half precision."""
from __future__ import annotations

import json
import os
import struct

import numpy as np
import torch
from torch import Tensor, nn

MODEL_FILE = "skein-demo.safetensors"


def write_safetensors(path: str, tensors: dict[str, np.ndarray]) -> None:
    """fp16, in the order given."""
    header: dict[str, object] = {}
    offset = 0
    for name, t in tensors.items():
        header[name] = {"dtype": "F16", "shape": list(t.shape), "data_offsets": [offset, offset + 2 * t.size]}
        offset += 2 * t.size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            file.write(np.ascontiguousarray(t, "<f2").tobytes())


def read_safetensors(path: str) -> dict[str, np.ndarray]:
    """fp16 files only."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    return {name: np.frombuffer(data[slice(*info["data_offsets"])], "<f2").reshape(info["shape"])
            for name, info in header.items()}


def rounded(model: nn.Module) -> dict[str, np.ndarray]:
    """The weights as the checkpoint holds them."""
    return {name: p.detach().to(torch.float16).cpu().numpy() for name, p in model.state_dict().items()}


def load_rounded(model: nn.Module, path: str) -> None:
    model.load_state_dict({n: torch.from_numpy(t.astype(np.float32)) for n, t in read_safetensors(path).items()})


def _flat(tensors: list[Tensor]) -> Tensor:
    return torch.cat([t.detach().flatten().float() for t in tensors])


def _write_flat(path: str, flat: Tensor, dtype: torch.dtype) -> None:
    flat.to(dtype).view(torch.int16).cpu().numpy().tofile(path)


def _read_flat(path: str, dtype: torch.dtype, like: Tensor) -> Tensor:
    return torch.from_numpy(np.fromfile(path, np.int16)).view(dtype).float().to(like.device)


def save_training(folder: str, model: nn.Module, optimizer: torch.optim.Optimizer, progress: dict[str, float]) -> None:
    """The checkpoint itself, what its rounding took away, and Adam's two moments."""
    os.makedirs(folder, exist_ok=True)
    write_safetensors(os.path.join(folder, MODEL_FILE), rounded(model))
    parameters = list(model.parameters())
    exact = _flat(parameters)
    moments = [optimizer.state[p] for p in parameters]
    _write_flat(os.path.join(folder, "remainder.bin"), exact - exact.half().float(), torch.float16)
    _write_flat(os.path.join(folder, "moment1.bin"), _flat([m["exp_avg"] for m in moments]), torch.bfloat16)
    _write_flat(os.path.join(folder, "moment2.bin"), _flat([m["exp_avg_sq"] for m in moments]), torch.bfloat16)
    with open(os.path.join(folder, "progress.json"), "w", encoding="utf-8") as file:
        json.dump(progress, file)


def load_training(folder: str, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, float]:
    load_rounded(model, os.path.join(folder, MODEL_FILE))
    parameters = list(model.parameters())
    with open(os.path.join(folder, "progress.json"), encoding="utf-8") as file:
        progress: dict[str, float] = json.load(file)
    sizes = [p.numel() for p in parameters]

    def pieces(name: str, dtype: torch.dtype) -> list[Tensor]:
        flat = _read_flat(os.path.join(folder, name), dtype, parameters[0])
        return [piece.view_as(p).clone() for piece, p in zip(flat.split(sizes), parameters)]

    remainders = pieces("remainder.bin", torch.float16)
    first, second = pieces("moment1.bin", torch.bfloat16), pieces("moment2.bin", torch.bfloat16)
    for p, remainder, m1, m2 in zip(parameters, remainders, first, second):
        p.data += remainder
        step = torch.tensor(float(progress["step"]), device=p.device if p.is_cuda else "cpu")
        optimizer.state[p] = {"step": step, "exp_avg": m1, "exp_avg_sq": m2}
    return progress
