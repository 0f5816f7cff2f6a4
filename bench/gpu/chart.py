#!/usr/bin/env python3
"""Draws decode speed by number of sequences, and its share of the speed that the device's limits allow, as SVG:

    chart.py FIGURES.json [...] OUT.svg

FIGURES.json: gpu.json of run.sh, or the output of `skein bench engine --json`. One line per model and state type.
"""
import json
import math
import pathlib
import sys
from html import escape

COLOURS = ("#1668a8", "#d1600f", "#2f8f46", "#a03070", "#6a55b8", "#8a6d1f")
WIDTH, HEIGHT = 470, 330              # of a panel
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 34, 44


class Series:
    """Decode cases of one model."""

    def __init__(self, bench: dict) -> None:
        cases = [case for case in bench["cases"] if case["kind"] == "decode"]
        self.name = f"{bench['model'].rsplit('/', 1)[-1].replace('random weights of size ', '')}, " \
                    f"{bench['weight_type']}, {bench['state_type']} states"
        self.speed = [(case["sequences"], case["tokens_per_s"]) for case in cases]
        self.share = [(case["sequences"], 100 * case["share_of_least"]) for case in cases
                      if case["share_of_least"] is not None]


def steps_around(low: float, high: float) -> list:
    """The steps 1, 2, 5, 10, ... from the last one up to `low` to the first one above `high`."""
    first = math.floor(math.log10(low))
    steps = [step * 10.0 ** power for power in range(first, math.ceil(math.log10(high)) + 2) for step in (1, 2, 5)]
    begin = max(i for i, step in enumerate(steps) if step <= low)
    end = min(i for i, step in enumerate(steps) if step > high)
    return steps[begin:end + 1]


class Panel:
    """Axes, and the mapping of values to coordinates. x is logarithmic."""

    def __init__(self, left: int, title: str, points: list, logarithmic: bool) -> None:
        self.left, self.title, self.logarithmic = left, title, logarithmic
        self.xs = sorted({x for x, _ in points})
        self.x_low, self.x_high = min(self.xs), max(max(self.xs), 2 * min(self.xs))
        values = [y for _, y in points]
        if logarithmic:
            self.marks = steps_around(min(values), max(values))
        else:
            self.marks = [20.0 * i for i in range(1 + max(5, math.ceil(max(values) / 20)))]
        self.y_low, self.y_high = self.marks[0], self.marks[-1]

    def x(self, value: float) -> float:
        inside = WIDTH - LEFT - RIGHT
        return self.left + LEFT + inside * math.log(value / self.x_low) / math.log(self.x_high / self.x_low)

    def y(self, value: float) -> float:
        part = math.log(value / self.y_low) / math.log(self.y_high / self.y_low) if self.logarithmic \
            else (value - self.y_low) / (self.y_high - self.y_low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part

    def axes(self) -> list:
        right, bottom = self.left + WIDTH - RIGHT, HEIGHT - BOTTOM
        out = [text(self.left + LEFT, TOP - 14, self.title, "start", 13)]
        for mark in self.marks:
            at = self.y(mark)
            label = f"{mark:,.0f}" + ("" if self.logarithmic else " %")
            out += [f'<line x1="{self.left + LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>',
                    text(self.left + LEFT - 6, at + 4, label, "end")]
        for mark in self.xs:
            at = self.x(mark)
            out += [f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{bottom}" y2="{bottom + 4}" stroke="#555"/>',
                    text(at, bottom + 17, f"{mark:,}", "middle")]
        out.append(f'<line x1="{self.left + LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}" stroke="#555"/>')
        out.append(text((self.left + LEFT + right) / 2, HEIGHT - 8, "concurrent sequences", "middle"))
        return out

    def line(self, points: list, colour: str) -> list:
        places = [(self.x(x), self.y(y)) for x, y in sorted(points)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'] + \
               [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]


def text(x: float, y: float, what: str, anchor: str, size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="#333">{escape(what)}</text>'


def drawn(all_series: list) -> str:
    lines = []
    panels = [(Panel(0, "tokens/s", [p for s in all_series for p in s.speed], True), "speed")]
    if any(series.share for series in all_series):
        panels.append((Panel(WIDTH, "share of the speed that bandwidth and tensor cores allow",
                             [p for s in all_series for p in s.share], False), "share"))
    for panel, name in panels:
        lines += panel.axes()
        for series, colour in zip(all_series, COLOURS):
            if points := getattr(series, name):
                lines += panel.line(points, colour)
    height = HEIGHT + 20 * len(all_series) + 10
    for row, (series, colour) in enumerate(zip(all_series, COLOURS)):
        at = HEIGHT + 14 + 20 * row
        key = f'x1="{LEFT}" x2="{LEFT + 24}" y1="{at - 4}" y2="{at - 4}"'
        lines += [f'<line {key} stroke="{colour}" stroke-width="3"/>',
                  text(LEFT + 32, at, series.name, "start", 12)]
    width = WIDTH * len(panels)
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                      f'height="{height}" font-family="sans-serif">',
                      f'<rect width="{width}" height="{height}" fill="#fff"/>', *lines, "</svg>"]) + "\n"


def main(arguments: list) -> int:
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 64
    all_series = []
    for path in arguments[:-1]:
        read = json.loads(pathlib.Path(path).read_text())
        all_series += [Series(bench) for bench in (read.get("bench", []) if "cases" not in read else [read])]
    all_series = [series for series in all_series if series.speed]
    if not all_series or len(all_series) > len(COLOURS):
        print(f"chart.py: {len(all_series)} series of decode figures; 1 to {len(COLOURS)} are accepted", file=sys.stderr)
        return 65
    pathlib.Path(arguments[-1]).write_text(drawn(all_series))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
