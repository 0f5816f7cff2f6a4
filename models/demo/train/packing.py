"""Packs documents into batches: one stream of tokens each, documents side by side, padded to chunks."""
from __future__ import annotations

import multiprocessing
import os
from random import Random
from typing import Iterator, NamedTuple

import numpy as np

from document import IGNORED, Document
from layout import CHUNK
from mixture import document, learn_known_words
from vocabulary import Vocabulary

BATCH_TOKENS = 65536
DOCUMENTS_MAX = 1024   # of one batch; the launch grid is that large
BATCHES_PER_TASK = 4


class Batch(NamedTuple):
    """All of fixed shape, so that compiled code fits every batch."""
    tokens: np.ndarray   # [BATCH_TOKENS] uint16
    targets: np.ndarray  # [BATCH_TOKENS] uint16, IGNORED where nothing is to be learnt
    first: np.ndarray    # [DOCUMENTS_MAX] int32, longest document first
    count: np.ndarray    # [DOCUMENTS_MAX] int32


def padded(length: int) -> int:
    return -(-length // CHUNK) * CHUNK


def packed(documents: list[Document], tokens_max: int = BATCH_TOKENS, documents_max: int = DOCUMENTS_MAX) -> Batch:
    tokens = np.zeros(tokens_max, np.uint16)
    targets = np.full(tokens_max, IGNORED, np.uint16)
    spans, at = [], 0
    for d in documents:
        tokens[at:at + len(d.tokens)] = d.tokens
        targets[at:at + len(d.targets)] = d.targets
        spans.append((padded(len(d.tokens)), at))
        at += padded(len(d.tokens))
    if at < tokens_max:
        spans.append((tokens_max - at, at))
    spans.sort(reverse=True)  # the longest start first, so that none is left running alone at the end
    table = np.zeros((2, documents_max), np.int32)
    table[:, :len(spans)] = np.array(spans, np.int32).T
    return Batch(tokens, targets, table[1], table[0])


def fill_batch(rng: Random, vocabulary: Vocabulary) -> Batch:
    documents, free = [], BATCH_TOKENS
    while len(documents) < DOCUMENTS_MAX - 1:
        d = document(rng, vocabulary)
        if padded(len(d.tokens)) > free:
            if free < 128:
                break
            continue  # a shorter one may still fit
        documents.append(d)
        free -= padded(len(d.tokens))
    return packed(documents)


_vocabulary: Vocabulary | None = None


def _start_worker(vocabulary_path: str) -> None:
    global _vocabulary
    _vocabulary = Vocabulary.load(vocabulary_path)
    learn_known_words(_vocabulary)
    os.nice(5)


def _make_batches(seed: str) -> list[Batch]:
    assert _vocabulary is not None
    rng = Random(seed)
    return [fill_batch(rng, _vocabulary) for _ in range(BATCHES_PER_TASK)]


def batches(vocabulary_path: str, seed: int, start: int, processes: int, ahead: int = 64) -> Iterator[Batch]:
    """Batches from number `start` on, the same whatever the number of processes; `ahead` tasks are under way."""
    with multiprocessing.get_context("spawn").Pool(processes, _start_worker, (vocabulary_path,)) as pool:
        number = start // BATCHES_PER_TASK
        waiting = []
        while True:
            while len(waiting) < ahead:
                waiting.append(pool.apply_async(_make_batches, (f"{seed} {number}",)))
                number += 1
            yield from waiting.pop(0).get()
