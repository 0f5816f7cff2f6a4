"""Which instances are held out: decided by a hash of what makes an instance, the same in every process.

Training never emits an instance whose key is held out, evaluation uses no other.
"""
from __future__ import annotations

import zlib
from typing import Callable, TypeVar

HELD_OUT_SHARE = 16  # one key in this many

T = TypeVar("T")


def is_held_out(*key: object) -> bool:
    """Whether the instance with this key belongs to the evaluation."""
    return zlib.crc32("|".join(map(str, key)).encode()) % HELD_OUT_SHARE == 5


def drawn(draw: Callable[[], T], key: Callable[[T], tuple[object, ...]], held_out: bool) -> T:
    """Draws until an instance lies on the wanted side."""
    while True:
        instance = draw()
        if is_held_out(*key(instance)) == held_out:
            return instance
