"""Draws the pictures of docs/concepts.md and the logo as SVG: python docs/site/diagrams.py"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

IMAGES = Path(__file__).resolve().parents[1] / "images"
WIDTH, HEIGHT, MARGIN = 480, 240, 40
COLOURS = ("#c0392b", "#2471a3", "#1e8449")
# Two speech bubbles: a query in one language, a document in another.
LOGO = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48" fill="none" stroke-width="4"
  stroke-linecap="round" stroke-linejoin="round">
<path d="M4 6h22v16H14l-6 6v-6H4z" stroke="#ffffff"/>
<path d="M44 20v16h-4v6l-6-6H22V28" stroke="#f5b041"/>
</svg>
"""


def main() -> None:
    """Writes logo.svg, scs.svg and sosl.svg."""
    (IMAGES / "logo.svg").write_text(LOGO, encoding="utf-8")
    # For a document vector of length 1 at a right angle, d SCS / d f has the length 1 / (1 + ε) /
    # (‖f‖ + ε).
    scs = {
        f"ε = {epsilon:g}": lambda length, epsilon=epsilon: 1 / (1 + epsilon) / (length + epsilon)
        for epsilon in (0, 0.5, 1)
    }
    picture = diagram("length of the vector", "gradient", scs, (0.02, 2), 5, {"0": 0.02, "2": 2})
    (IMAGES / "scs.svg").write_text(picture, encoding="utf-8")
    edges = (-1, 0.2, 0.7, 1)
    sosl = {
        f"grade {grade}": lambda score, low=low, high=high: max(score - high, low - score, 0) ** 2
        for grade, (low, high) in enumerate(itertools.pairwise(edges))
    }
    marks = {"-1": -1, "θ₁ = 0.2": 0.2, "θ₂ = 0.7": 0.7, "1": 1}
    picture = diagram("score", "SOSL", sosl, (-1, 1), 2.9, marks)
    (IMAGES / "sosl.svg").write_text(picture, encoding="utf-8")


def diagram(
    x_label: str,
    y_label: str,
    curves: dict[str, Callable[[float], float]],
    x_range: tuple[float, float],
    top: float,
    marks: dict[str, float],
) -> str:
    """Returns an SVG of curves, up to `top`, with named vertical lines."""
    low, high = x_range
    bottom = HEIGHT - MARGIN

    def place(x: float, y: float) -> tuple[float, float]:
        right = MARGIN + (x - low) / (high - low) * (WIDTH - 2 * MARGIN)
        return round(right, 1), round(bottom - y / top * (bottom - 20), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#ffffff"/>',
        f'<path d="M{MARGIN} 20V{bottom}H{WIDTH - MARGIN}" fill="none" stroke="#333333"/>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">{x_label}</text>',
        f'<text x="14" y="{HEIGHT / 2}" transform="rotate(-90 14 {HEIGHT / 2})"'
        f' text-anchor="middle">{y_label}</text>',
    ]
    for name, x in marks.items():
        right, _ = place(x, 0)
        parts.append(f'<path d="M{right} 20V{bottom}" stroke="#bbbbbb" stroke-dasharray="3 3"/>')
        parts.append(f'<text x="{right}" y="{bottom + 15}" text-anchor="middle">{name}</text>')
    for row, ((name, curve), colour) in enumerate(zip(curves.items(), COLOURS)):
        xs = [low + (high - low) * step / 200 for step in range(201)]
        line = " ".join("{},{}".format(*place(x, curve(x))) for x in xs if curve(x) <= top)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="{WIDTH - 110}" y="{36 + 16 * row}" fill="{colour}" stroke="#ffffff"'
            f' stroke-width="4" paint-order="stroke">{name}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    main()
