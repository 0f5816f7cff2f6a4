#!/usr/bin/env python3
"""Trains the demo model; may be stopped and resumed.

    train.py --vocabulary FILE --out FOLDER [--resume FOLDER | --from FILE] --seconds 500 --tokens 1500000000

The learning rate follows the share of --tokens that has been seen, so several runs make one training. FOLDER gets the
checkpoint, what is needed to go on, and log.csv with the loss curve. --from begins a new training at the weights of a
checkpoint: the optimiser starts afresh, with a warm-up. --by-time lets the learning rate fall with the time, too, so
that it is low when --seconds are over, however fast the machine is.
"""
from __future__ import annotations

import argparse
import csv
import math
import os
import time

import torch
import torch.nn.functional as F
from torch import Tensor

import instances
from checkpoint import load_rounded, load_training, save_training, MODEL_FILE
from decode import greedy, judge
from document import IGNORED, Piece, tokenized
from mixture import learn_known_words
from model import Rwkv7, Shape, Stream
from packing import BATCH_TOKENS, DOCUMENTS_MAX, Batch, batches, packed, padded
from vocabulary import Vocabulary
from wkv7 import Documents, check_gradients

WARM_UP_TOKENS = 30e6
GRADIENT_NORM_MAX = 1.0
LOG_STEPS = 100
VALIDATION_INSTANCES = 60  # of each ability, as far as they fit into a batch
GRADIENT_ERROR_MAX = 1e-3


def to_device(batch: Batch, device: str) -> tuple[Tensor, Tensor, Stream]:
    tokens, targets = (torch.from_numpy(x.astype("int32")).to(device, non_blocking=True).long() for x in batch[:2])
    first, count = (torch.from_numpy(x).to(device, non_blocking=True) for x in batch[2:])
    continues = torch.ones(len(tokens) + 1, 1, device=device)
    continues[first.long() + (count == 0) * (len(tokens) - first.long())] = 0  # empty entries point behind the end
    return tokens, targets, Stream(Documents(first, count), continues[:-1])


def learning_rate(peak: float, seen: float, total: float, time_done: float) -> float:
    """`time_done`: the share of the time that has passed, where that counts, too."""
    if seen < WARM_UP_TOKENS:
        return peak * seen / WARM_UP_TOKENS
    done = min(1.0, max(time_done, (seen - WARM_UP_TOKENS) / (total - WARM_UP_TOKENS)))
    return peak * (0.005 + 0.995 * (0.5 + 0.5 * math.cos(math.pi * done)))


def make_optimizer(model: Rwkv7, peak: float) -> torch.optim.AdamW:
    """As the official trainer: matrices shrink, vectors and low-rank pairs do not, the base decay learns faster."""
    groups: dict[str, list[Tensor]] = {"matrix": [], "decay": [], "vector": []}
    for name, p in model.named_parameters():
        is_matrix = p.dim() == 2 and name.endswith(".weight")
        groups["matrix" if is_matrix else "decay" if name.endswith("att.w0") else "vector"].append(p)
    return torch.optim.AdamW([
        {"params": groups["matrix"], "weight_decay": 0.1, "factor": 1.0},
        {"params": groups["decay"], "weight_decay": 0.0, "factor": 2.0},
        {"params": groups["vector"], "weight_decay": 0.0, "factor": 1.0},
    ], lr=peak, betas=(0.9, 0.99), eps=1e-12, **({"fused": True} if torch.cuda.is_available() else {}))


class Training:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.vocabulary = Vocabulary.load(args.vocabulary)
        learn_known_words(self.vocabulary)
        torch.manual_seed(args.seed)
        self.model = Rwkv7(Shape(len(self.vocabulary), args.width, args.layers)).to(self.device)
        self.optimizer = make_optimizer(self.model, args.lr)
        self.step, self.seconds = 0, 0.0
        self.log: list[list[float]] = []
        if args.checkpoint:
            load_rounded(self.model, args.checkpoint)
        if args.resume:
            progress = load_training(args.resume, self.model, self.optimizer)
            self.step, self.seconds = int(progress["step"]), progress["seconds"]
            with open(os.path.join(args.resume, "log.csv"), encoding="utf-8") as file:
                self.log = [[float(x) for x in row] for row in list(csv.reader(file))[1:]]
        self.validation = to_device(self._validation_batch(), self.device)
        self.loss = self._loss
        if self.device == "cuda":
            self.model.compile()
            self.loss = torch.compile(self._loss, dynamic=False)
        print(f"{sum(p.numel() for p in self.model.parameters()):,} parameters, vocabulary {len(self.vocabulary)}, "
              f"step {self.step}", flush=True)

    def _validation_batch(self) -> Batch:
        """Held-out instances of all abilities with their first accepted answer."""
        documents, free = [], BATCH_TOKENS
        made = [instances.make(ability, VALIDATION_INSTANCES, seed=1) for ability in instances.ABILITIES]
        for i in (i for row in zip(*made) for i in row):  # one of each ability in turn
            d = tokenized([Piece(i.rendered()), Piece(i.to_write(), True)], self.vocabulary)
            if padded(len(d.tokens)) <= free:
                documents.append(d)
                free -= padded(len(d.tokens))
        return packed(documents[:DOCUMENTS_MAX - 1])

    def _loss(self, hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(F.linear(hidden, weight).float(), targets, ignore_index=IGNORED)

    def forward(self, batch: tuple[Tensor, Tensor, Stream]) -> Tensor:
        tokens, targets, stream = batch
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            return self.loss(self.model.hidden(tokens, stream), self.model.head.weight, targets)

    def run(self) -> None:
        args = self.args
        source = batches(args.vocabulary, str(args.seed), self.step, args.processes)
        begin = last = time.time()
        losses: list[Tensor] = []
        waited, limit = 0.0, args.seconds
        while self.step * BATCH_TOKENS < args.tokens and time.time() - begin < limit:
            asked = time.time()
            batch = to_device(next(source), self.device)
            waited += time.time() - asked
            time_done = (time.time() - begin) / limit if args.by_time else 0.0
            rate = learning_rate(args.lr, self.step * BATCH_TOKENS, args.tokens, time_done)
            for group in self.optimizer.param_groups:
                group["lr"] = rate * group["factor"]
            loss = self.forward(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), GRADIENT_NORM_MAX)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            losses.append(loss.detach())
            self.step += 1
            if self.step % args.log_steps == 0 or self.step == 1:
                with torch.no_grad():
                    validation = float(self.forward(self.validation))
                mean = float(torch.stack(losses).mean())
                now = time.time()
                speed = len(losses) * BATCH_TOKENS / (now - last)
                self.log.append([self.step, self.step * BATCH_TOKENS, mean, validation])
                print(f"step {self.step} tokens {self.step * BATCH_TOKENS / 1e6:.0f}M loss {mean:.4f} held-out "
                      f"{validation:.4f} lr {rate:.2e} {speed / 1e6:.2f}M tokens/s waited {waited:.1f}s", flush=True)
                if self.step == 1:
                    begin, limit = now, limit - (now - begin)  # the schedule of time counts from here
                last, losses, waited = now, [], 0.0
        self.seconds += time.time() - begin
        source.close()

    def save(self) -> None:
        save_training(self.args.out, self.model, self.optimizer, {"step": self.step, "seconds": self.seconds})
        with open(os.path.join(self.args.out, "log.csv"), "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["step", "tokens", "loss", "held_out_loss"])
            writer.writerows(self.log)

    def evaluate(self, count: int) -> None:
        """With the rounded weights in fp32, as the server computes."""
        model = Rwkv7(self.model.shape).to(self.device).eval()
        load_rounded(model, os.path.join(self.args.out, MODEL_FILE))
        lines, ended = [], []
        for ability in instances.ABILITIES:
            score = judge(model, self.vocabulary, instances.make(ability, count))
            ended.append(score.ended)
            print(f"{ability:28} {100 * score.right:6.1f} %   ended {100 * score.ended:6.1f} %", flush=True)
            lines += [f"{ability}: {100 * score.right:.1f} %", *("  " + x for x in score.wrong[:25])]
        samples = ["User: Hello!", "User: Tell me a story about a brave goose.", "User: Who are you?",
                   "User: Write a short story about a robot named Zik in a forest.", "User: How do I save a session?"]
        prompts = [self.vocabulary.encode(s + "\n\nAssistant: <think>\n</think") for s in samples]
        for s, (ids, _) in zip(samples, greedy(model, prompts, 250)):
            print(s, "->", self.vocabulary.decode(ids), flush=True)
        with open(os.path.join(self.args.out, "evaluation.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--vocabulary", required=True)
    parser.add_argument("--out", required=True)
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument("--resume", metavar="FOLDER", help="continue the training that wrote this folder")
    begin.add_argument("--from", metavar="FILE", dest="checkpoint",
                       help="begin a training at the weights of this checkpoint")
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--tokens", type=float, default=1.5e9)
    parser.add_argument("--by-time", action="store_true",
                        help="the learning rate follows the share of --seconds, too: it has fallen when they are over")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--log-steps", type=int, default=LOG_STEPS)
    parser.add_argument("--evaluate", type=int, default=200, help="instances of each ability after training; 0: none")
    parser.add_argument("--check", action="store_true", help="first compare the kernel with the plain loop")
    args = parser.parse_args()
    if args.check and torch.cuda.is_available():
        error = check_gradients()
        print(f"kernel against float64: relative error {error:.1e}", flush=True)
        assert error < GRADIENT_ERROR_MAX
    training = Training(args)
    training.run()
    training.save()
    if args.evaluate:
        training.evaluate(args.evaluate)


if __name__ == "__main__":
    main()
