#!/usr/bin/env python3
"""Writes the mean of checkpoints of one training, which is often better than each of them.

    mean.py CHECKPOINT... OUT
"""
from __future__ import annotations

import sys

import numpy as np

from checkpoint import read_safetensors, write_safetensors


def mean(paths: list[str]) -> dict[str, np.ndarray]:
    models = [read_safetensors(path) for path in paths]
    return {name: np.mean([m[name].astype(np.float32) for m in models], axis=0).astype(np.float16)
            for name in models[0]}


if __name__ == "__main__":
    write_safetensors(sys.argv[-1], mean(sys.argv[1:-1]))
