"""The vocabulary of the demo model: the World file format, greedy longest match, built from the generator's own text.

A token never crosses from one kind of text to another (a word with the space before it, a digit, a run of punctuation,
newlines), so greedy matching over a whole text and over its pieces give the same tokens, and pieces can be cached.
Digits stand alone, so that arithmetic is learnt by digits; lower-case words without a space before them have no token,
so that a word in quotes comes letter by letter; Chinese comes by characters.
"""
from __future__ import annotations

import ast
import re
from collections import Counter
from typing import Iterable, Sequence

END_OF_TEXT = 0
PIECE = re.compile(r"\n+| ?</?think|✿[a-z]+✿|✿| ?[A-Za-zÀ-ÿœŒ]+|[0-9]|[\u4e00-\u9fff]+| ?[^\w\s]+|.|\s", re.DOTALL)
FIXED = ["\n\n", " <think", "<think", "</think", "✿prefix✿", "✿suffix✿", "✿middle✿", "✿"]
CACHED_PIECES = 200_000


class Vocabulary:
    """Tokens by id; id 0 is the end of text and stands for no bytes."""

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.tokens = [b"", *tokens]
        self._ids = {t: i for i, t in enumerate(self.tokens) if t}
        self._longest = max(map(len, self.tokens))
        self._cache: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.tokens)

    def greedy(self, data: bytes) -> list[int]:
        """The definition: always the longest token that fits."""
        ids, at = [], 0
        while at < len(data):
            length = min(self._longest, len(data) - at)
            while data[at:at + length] not in self._ids:
                length -= 1
            ids.append(self._ids[data[at:at + length]])
            at += length
        return ids

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        cache = self._cache
        for piece in PIECE.findall(text):
            known = cache.get(piece)
            if known is None:
                if len(cache) > CACHED_PIECES:
                    cache.clear()
                known = cache[piece] = self.greedy(piece.encode())
            ids += known
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        return b"".join(self.tokens[i] for i in ids).decode(errors="replace")

    def save(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            for number, token in enumerate(self.tokens[1:], start=1):
                try:
                    literal = repr(token.decode())
                except UnicodeDecodeError:
                    literal = repr(token)
                file.write(f"{number} {literal} {len(token)}\n")

    @staticmethod
    def load(path: str) -> "Vocabulary":
        tokens = []
        with open(path, encoding="utf-8") as file:
            for line in file.read().split("\n")[:-1]:
                literal = ast.literal_eval(line[line.index(" ") + 1:line.rindex(" ")])
                tokens.append(literal.encode() if isinstance(literal, str) else literal)
        return Vocabulary(tokens)


def _may_be_token(piece: str) -> bool:
    """Words with a space or a capital, Chinese, runs of punctuation; no plain lower-case word, no digits."""
    return not piece.isdigit() and not (piece.isascii() and piece.isalpha() and piece.islower())


def build(texts: Iterable[str], size: int, least: int) -> Vocabulary:
    """Single bytes, the fixed pieces, then the most frequent pieces that occur at least `least` times."""
    counts: Counter[str] = Counter()
    for text in texts:
        for piece in PIECE.findall(text):
            if "\u4e00" <= piece[0] <= "\u9fff":
                counts.update(piece)  # Chinese comes by characters: the same ones whatever stands beside them
            else:
                counts[piece] += 1
    tokens = [bytes([b]) for b in range(256)]
    chosen = set(tokens)
    best = [p for p, n in counts.most_common() if n >= least and _may_be_token(p)]
    for piece in FIXED + best:
        data = piece.encode()
        if len(tokens) + 1 < size and data not in chosen and len(data) <= 24:
            tokens.append(data)
            chosen.add(data)
    return Vocabulary(tokens)
