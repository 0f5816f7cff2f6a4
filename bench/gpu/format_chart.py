#!/usr/bin/env python3
"""Draws decode speed by weight format, a panel for each number of sequences, as SVG:

    format_chart.py FIGURES.json OUT.svg

FIGURES.json: "sequences", a list of numbers, and "tokens_per_s", for each format as many figures. The first format is
what the others are compared with.
"""
import json
import pathlib
import sys

from chart import COLOURS, text

PANEL, HEIGHT, TOP, BOTTOM, SIDE = 220, 240, 34, 24, 12


def panel(left: float, sequences: int, speeds: dict) -> list:
    """Bars for one number of sequences, each with its figure and its ratio to the first."""
    first, highest = next(iter(speeds.values())), max(speeds.values())
    wide = (PANEL - 2 * SIDE) / len(speeds)
    title = f"{sequences} sequence" + ("s" if sequences > 1 else "")
    lines = [text(left + PANEL / 2, 16, title, "middle", 13)]
    for i, ((name, speed), colour) in enumerate(zip(speeds.items(), COLOURS)):
        high = (HEIGHT - TOP - BOTTOM - 28) * speed / highest
        x, y = left + SIDE + i * wide, HEIGHT - BOTTOM - high
        lines += [f'<rect x="{x + 4:.1f}" y="{y:.1f}" width="{wide - 8:.1f}" height="{high:.1f}" fill="{colour}"/>',
                  text(x + wide / 2, y - 17, f"{speed:,}", "middle"),
                  text(x + wide / 2, y - 4, f"{speed / first:.2f} x", "middle", 10),
                  text(x + wide / 2, HEIGHT - 8, name, "middle")]
    return lines


def drawn(figures: dict) -> str:
    formats = figures["tokens_per_s"]
    if not formats or len(formats) > len(COLOURS):
        raise ValueError(f"{len(formats)} formats; 1 to {len(COLOURS)} are accepted")
    if any(len(speeds) != len(figures["sequences"]) for speeds in formats.values()):
        raise ValueError("a format does not have one figure for each number of sequences")
    lines = []
    for i, sequences in enumerate(figures["sequences"]):
        lines += panel(i * PANEL, sequences, {name: speeds[i] for name, speeds in formats.items()})
    width = PANEL * len(figures["sequences"])
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" '
                      f'height="{HEIGHT}" font-family="sans-serif">',
                      f'<rect width="{width}" height="{HEIGHT}" fill="#fff"/>', *lines, "</svg>"]) + "\n"


def main(arguments: list) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 64
    try:
        image = drawn(json.loads(pathlib.Path(arguments[0]).read_text()))
    except (KeyError, ValueError) as trouble:
        print(f"format_chart.py: {trouble}", file=sys.stderr)
        return 65
    pathlib.Path(arguments[1]).write_text(image)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
