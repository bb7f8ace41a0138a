#!/usr/bin/env python3
"""Draws docs/src/pictures/scaling.svg from the table of several GPUs in docs/src/devices.md.

Usage: bench/pictures/scaling.py, from any folder. Needs Python's standard library alone.
"""

import pathlib
import re

BOOK = pathlib.Path(__file__).resolve().parents[2] / "docs" / "src"
# Rates of one GPU, Gcells/s, as the text above the table gives them.
ALONE = {"f32": 163.1, "f64": 82.1}
COLOURS = {"f32": "#2f6fb0", "f64": "#b0642f"}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 560, 380, 70, 24, 150, 50
MOST_GPUS, MOST_RATE = 4.4, 700.0


def rows(text):
    """Precision, whether cells grow with GPUs, GPUs and rate of each row that compares with one GPU of `ALONE`."""
    kind = ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("| ") or len(cells) != 6 or not re.fullmatch(r"\d+", cells[2]):
            continue
        kind = cells[0] or kind
        if cells[1].startswith("1536 x") and kind[:3] in ALONE:
            yield kind[:3], "in proportion" in kind, int(cells[2]), float(cells[3])


def x(gpus):
    return LEFT + (WIDTH - LEFT - RIGHT) * gpus / MOST_GPUS


def y(rate):
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / MOST_RATE


def text(at, words, anchor="middle"):
    return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" font-size="12" text-anchor="{anchor}">{words}</text>'


def picture(points):
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'role="img" font-family="Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif">',
        "<title>rates of FDTD(4,2) on one, two and four H200</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for rate in range(0, int(MOST_RATE) + 1, 100):
        out.append(f'<path d="M{x(0):.1f} {y(rate):.1f}H{x(MOST_GPUS):.1f}" stroke="#dddddd"/>')
        out.append(text((LEFT - 8, y(rate) + 4), rate, "end"))
    for gpus in (1, 2, 4):
        out.append(text((x(gpus), HEIGHT - BOTTOM + 18), gpus))
    out.append(text(((x(0) + x(MOST_GPUS)) / 2, HEIGHT - 12), "GPUs"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(f'<g transform="rotate(-90 18 {middle})">' + text((18, middle), "Gcells/s") + "</g>")
    for precision, alone in ALONE.items():
        colour = COLOURS[precision]
        line = f'M{x(0):.1f} {y(0):.1f}L{x(4):.1f} {y(4 * alone):.1f}'
        out.append(f'<path d="{line}" stroke="{colour}" stroke-dasharray="3 3" fill="none"/>')
        for grows in (True, False):
            of = {1: alone} | {g: r for p, w, g, r in points if p == precision and w == grows}
            path = "L".join(f"{x(g):.1f} {y(r):.1f}" for g, r in sorted(of.items()))
            dash = "" if grows else ' stroke-dasharray="7 3"'
            out.append(f'<path d="M{path}" stroke="{colour}" fill="none" stroke-width="1.6"{dash}/>')
            for g, r in of.items():
                fill = colour if grows else "#ffffff"
                out.append(f'<circle cx="{x(g):.1f}" cy="{y(r):.1f}" r="4" stroke="{colour}" fill="{fill}"/>')
            words = f"{precision}, {'cells in proportion' if grows else 'the same cells'}"
            last = max(of)
            at = (x(last) + 10, y(of[last]) + (-2 if grows else 14))
            out.append(text(at, words, "start"))
    out.append(text((x(3) - 6, y(3 * ALONE["f32"]) - 8), "dotted: multiples of one", "end"))
    return "\n".join(out + ["</svg>", ""])


def main():
    points = list(rows((BOOK / "devices.md").read_text()))
    if len(points) != 8:
        raise SystemExit(f"devices.md has {len(points)} rows of 1536 planes, not 8")
    (BOOK / "pictures" / "scaling.svg").write_text(picture(points))


main()
