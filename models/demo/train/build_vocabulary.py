#!/usr/bin/env python3
"""Writes the vocabulary from what the generator emits.

    build_vocabulary.py OUT [SIZE]
"""
from __future__ import annotations

import sys
from random import Random
from typing import Iterator

import counting
import mixture
import phrasebook
import words
from vocabulary import build

DOCUMENTS = 60_000
LEAST = 25


def texts() -> Iterator[str]:
    """All but spelling lessons, whose words shall come letter by letter; the phrasebook's words are needed in full."""
    rng = Random(7)
    words.SPELLING[:] = words.ANIMALS  # the lists are shared: no lesson may make these words frequent
    for table in (mixture.BETWEEN, mixture.ALONE):
        table[:] = [(weight, make) for weight, make in table if make is not counting.turn]
    for _ in range(DOCUMENTS):
        yield from (piece.text for piece in mixture.pieces(rng))
        yield from phrasebook.sentences(rng).texts.values()


if __name__ == "__main__":
    vocabulary = build(texts(), int(sys.argv[2]) if len(sys.argv) > 2 else 3584, LEAST)
    vocabulary.save(sys.argv[1])
    print(len(vocabulary), "tokens")
