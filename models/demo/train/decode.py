"""Greedy decoding of many prompts at once, token by token, for the evaluation during training."""
from __future__ import annotations

import torch
from torch import Tensor

from instances import Instance
from model import Rwkv7
from vocabulary import END_OF_TEXT, Vocabulary
from wkv7 import HEAD_SIZE


class State:
    """What the model remembers of each row."""

    def __init__(self, model: Rwkv7, rows: int) -> None:
        like = model.emb.weight
        C, layers = model.shape.width, model.shape.layers
        self.time = like.new_zeros(layers, rows, C)
        self.channel = like.new_zeros(layers, rows, C)
        self.matrix = like.new_zeros(layers, rows, C // HEAD_SIZE, HEAD_SIZE, HEAD_SIZE)


def step(model: Rwkv7, tokens: Tensor, state: State) -> Tensor:
    """One token of each row: [rows] -> logits [rows, vocabulary]."""
    x = model.blocks[0].ln0(model.emb(tokens))
    v_first: Tensor | None = None
    for i, block in enumerate(model.blocks):
        normal = block.ln1(x)
        r, w, k, v, a, b, gate, v_first = block.att.prepare(normal, state.time[i] - normal, v_first)
        state.time[i] = normal
        S = state.matrix[i]
        removed = (S @ a[..., None])
        S = S * w[:, :, None, :] + removed * b[:, :, None, :] + v[..., None] * k[:, :, None, :]
        state.matrix[i] = S
        x = x + block.att.read_out((S @ r[..., None])[..., 0], r, k, v, gate)
        normal = block.ln2(x)
        x = x + block.ffn(normal, state.channel[i] - normal)
        state.channel[i] = normal
    return model.head(model.ln_out(x))


@torch.no_grad()
def greedy(model: Rwkv7, prompts: list[list[int]], tokens_max: int) -> list[tuple[list[int], bool]]:
    """For each prompt what the model writes, and whether it ended it."""
    device = model.emb.weight.device
    longest = max(map(len, prompts))
    state = State(model, len(prompts))
    given = torch.zeros(longest, len(prompts), dtype=torch.long)
    for row, prompt in enumerate(prompts):  # all prompts end together, so that answers are written together
        given[longest - len(prompt):, row] = torch.tensor(prompt)
    starts = torch.tensor([longest - len(p) for p in prompts], device=device)
    given = given.to(device)
    written = torch.zeros(tokens_max, len(prompts), dtype=torch.long, device=device)
    tokens = given[0]
    for t in range(longest + tokens_max - 1):
        tokens = given[t] if t < longest else written[t - longest]
        logits = step(model, tokens, state)
        waiting = starts > t  # not begun: what they were fed is forgotten
        if t < longest and bool(waiting.any()):
            state.time[:, waiting] = 0
            state.channel[:, waiting] = 0
            state.matrix[:, waiting] = 0
        if t + 1 >= longest:
            written[t + 1 - longest] = logits.argmax(-1)
            if t % 16 == 0 and bool((written[:t + 2 - longest] == END_OF_TEXT).any(0).all()):
                break
    answers = []
    for row in written.T.tolist():
        ended = END_OF_TEXT in row
        answers.append((row[:row.index(END_OF_TEXT)] if ended else row, ended))
    return answers


class Score:
    """How one ability did."""

    def __init__(self, right: int, ended: int, count: int, wrong: list[str]) -> None:
        self.right, self.ended, self.count, self.wrong = right / count, ended / count, count, wrong


def judge(model: Rwkv7, vocabulary: Vocabulary, instances: list[Instance], tokens_max: int = 120) -> Score:
    written = greedy(model, [vocabulary.encode(i.rendered()) for i in instances], tokens_max)
    right, wrong = 0, []
    for instance, (ids, _) in zip(instances, written):
        answer = instance.answer_of(vocabulary.decode(ids))
        if answer in instance.expected:
            right += 1
        else:
            asked = instance.rendered()[-200:] if instance.is_chat() else instance.prompt
            wrong.append(f"{asked!r} -> {answer!r}, not {instance.expected[0]!r}")
    return Score(right, sum(ended for _, ended in written), len(instances), wrong)
