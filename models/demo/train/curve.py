#!/usr/bin/env python3
"""Draws the loss curve of a training as SVG.

    curve.py log.csv... loss.svg        one log for each training; the next begins where the one before ended
"""
from __future__ import annotations

import csv
import math
import sys

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 760, 400, 60, 46, 20, 20
LINES = [("loss", "#3b6fb6", "training"), ("held_out_loss", "#c2543b", "held-out instances, answers only")]


def read(path: str) -> list[dict[str, float]]:
    with open(path, encoding="utf-8") as file:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def joined(paths: list[str]) -> list[dict[str, float]]:
    rows: list[dict[str, float]] = []
    for path in paths:
        before = rows[-1]["tokens"] if rows else 0.0
        rows += [{**row, "tokens": before + row["tokens"]} for row in read(path)]
    return rows


def drawn(rows: list[dict[str, float]]) -> str:
    most = max(r["tokens"] for r in rows)
    low = math.floor(math.log10(min(min(r[name] for name, _, _ in LINES) for r in rows)))
    high = 1

    def x(tokens: float) -> float:
        return LEFT + tokens / most * (WIDTH - LEFT - RIGHT)

    def y(loss: float) -> float:
        return TOP + (high - math.log10(loss)) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def text(left: float, top: float, words: str, anchor: str = "middle", colour: str = "black") -> str:
        return f'<text x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             'font-family="sans-serif" font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for power in range(low, high + 1):
        at = y(10 ** power)
        parts.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(text(LEFT - 6, at + 4, f"{10.0 ** power:g}", "end"))
    for tokens in range(0, int(most) + 1, 100_000_000):
        parts.append(text(x(tokens), HEIGHT - BOTTOM + 18, str(tokens // 1_000_000)))
    parts.append(text(WIDTH / 2, HEIGHT - 8, "million tokens"))
    for number, (name, colour, label) in enumerate(LINES):
        points = " ".join(f"{x(r['tokens']):.1f},{y(r[name]):.1f}" for r in rows)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(text(WIDTH - RIGHT - 8, TOP + 18 + 16 * number, label, "end", colour))
    return "\n".join(parts) + "\n</svg>\n"


if __name__ == "__main__":
    with open(sys.argv[-1], "w", encoding="utf-8") as out:
        out.write(drawn(joined(sys.argv[1:-1])))
