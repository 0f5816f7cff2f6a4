#!/usr/bin/env python3
"""Writes what the trainer's forward pass computes with the checkpoint's weights, in fp32, for other engines to match.

    golden.py FOLDER        reads the checkpoint and its vocabulary in FOLDER, writes golden.json there

A case holds a prompt, its tokens, the most likely token after each of them, and all logits after the last one.
"""
from __future__ import annotations

import json
import os
import sys

import torch

from checkpoint import MODEL_FILE, load_rounded, read_safetensors
from layout import CHUNK
from model import Rwkv7, Shape, Stream
from vocabulary import Vocabulary
from wkv7 import Documents

PROMPTS = [
    "User: My name is Ida and I live in Oslo.\n\nAssistant: Nice to meet you, Ida!\n\nUser: What is 27 + 48?\n\n"
    "Assistant: 27 + 48 = 75.\n\nUser: Where do I live?\n\nAssistant: <think>\n</think",
    "English: Where is the library?\n\nChinese:",
    "✿prefix✿✿suffix✿ So Tom stayed dry.✿middle✿Tom lives in Bern. It began to rain. ",
]


def logits_of(model: Rwkv7, tokens: list[int]) -> torch.Tensor:
    """[tokens, vocabulary]; the stream is padded to a whole chunk behind them."""
    padded = tokens + [0] * (-len(tokens) % CHUNK)
    continues = torch.ones(len(padded), 1)
    continues[0] = 0
    documents = Documents(torch.tensor([0], dtype=torch.int32), torch.tensor([len(padded)], dtype=torch.int32))
    with torch.no_grad():
        return model(torch.tensor(padded), Stream(documents, continues))[:len(tokens)]


def load(folder: str) -> Rwkv7:
    path = os.path.join(folder, MODEL_FILE)
    tensors = read_safetensors(path)
    vocabulary, width = tensors["emb.weight"].shape
    layers = 1 + max(int(n.split(".")[1]) for n in tensors if n.startswith("blocks."))
    model = Rwkv7(Shape(vocabulary, width, layers)).eval()
    load_rounded(model, path)
    return model


def main(folder: str) -> None:
    model, vocabulary = load(folder), Vocabulary.load(os.path.join(folder, "skein-demo.vocab.txt"))
    cases = []
    for prompt in PROMPTS:
        tokens = vocabulary.encode(prompt)
        logits = logits_of(model, tokens)
        cases.append({"prompt": prompt, "tokens": tokens, "argmax": logits.argmax(-1).tolist(),
                      "last_logits": [float(f"{x:.7g}") for x in logits[-1].tolist()]})
    with open(os.path.join(folder, "golden.json"), "w", encoding="utf-8") as file:
        json.dump({"cases": cases}, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
