"""Means with their intervals as an SVG, without a library for plots."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from hippogpu.evaluate.intervals import Interval

_LEFT, _WIDE, _LINE, _EDGE = 260, 420, 24, 28


class Dot(NamedTuple):
    """A name, its mean and its interval, as fractions in [0, 1]."""

    name: str
    interval: Interval


def interval_plot(title: str, dots: Sequence[Dot]) -> str:
    """A line a name on an axis from 0 to 100 percent: a dot at the mean, a bar over the interval."""
    height = 2 * _EDGE + _LINE * len(dots) + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDE + _EDGE}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<text x="{_LEFT}" y="16" font-weight="bold">{html.escape(title)}</text>',
    ]
    foot = _EDGE + _LINE * len(dots)
    for percent in range(0, 101, 20):
        x = _at(percent / 100)
        parts.append(f'<line x1="{x}" y1="{_EDGE}" x2="{x}" y2="{foot}" stroke="#ddd"/>')
        parts.append(f'<text x="{x}" y="{foot + 16}" text-anchor="middle">{percent}</text>')
    for place, dot in enumerate(dots):
        y = _EDGE + _LINE * place + _LINE // 2
        low, mean, high = (_at(value) for value in (dot.interval.low, dot.interval.mean, dot.interval.high))
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 4}" text-anchor="end">{html.escape(dot.name)}</text>')
        parts.append(f'<line x1="{low}" y1="{y}" x2="{high}" y2="{y}" stroke="#888" stroke-width="2"/>')
        parts.append(f'<circle cx="{mean}" cy="{y}" r="4" fill="#1f6fb4"/>')
    return "\n".join([*parts, "</svg>\n"])


def _at(fraction: float) -> str:
    """Where on the axis a fraction stands."""
    return f"{_LEFT + _WIDE * fraction:.1f}"
