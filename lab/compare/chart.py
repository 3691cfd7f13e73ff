"""The chart of a comparison, as SVG: three panels of bars with their numbers, for a light page and a dark one."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from lab.compare.results import UNITS, Measured

LABELS, BAR, GAP, HEAD, PANEL, PAD = 170, 20, 8, 46, 230, 24
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.head{font-weight:600}.note{fill:#59636e}"
    ".bar{fill:#8c959f}.ours{fill:#0969da}"
    "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.note{fill:#9198a1}.bar{fill:#656c76}.ours{fill:#4493f8}}"
)
NUMBER_ROOM = 56
BETTER = {"turns_per_s": "more is better", "cpu_ms_per_turn": "less is better", "p99_ms": "less is better; ideal 2300"}


def chart(results: Sequence[Measured]) -> str:
    """Return a chart with one bar per system and figure: the median of its rounds, or `failed` for a system without the
    figure."""
    width = LABELS + len(UNITS) * (PANEL + PAD)
    height = HEAD + len(results) * (BAR + GAP) + GAP
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="The reference turn on {escape(", ".join(r.system.label for r in results))}">'
        ),
        f"<style>{STYLE}</style>",
    ]
    for row, result in enumerate(results):
        y = HEAD + row * (BAR + GAP) + 15
        parts.append(f'<text x="{LABELS - 10}" y="{y}" text-anchor="end">{escape(result.system.label)}</text>')
    for column, (name, unit) in enumerate(UNITS.items()):
        x = LABELS + column * (PANEL + PAD)
        parts.append(f'<text class="head" x="{x}" y="16">{escape(unit)}</text>')
        parts.append(f'<text class="note" x="{x}" y="34">{escape(BETTER[name])}</text>')
        most = max((value for result in results if (value := result.median(name))), default=1.0)
        for row, result in enumerate(results):
            parts.extend(_bar(x, HEAD + row * (BAR + GAP), result, result.median(name), most))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _bar(x: int, y: int, result: Measured, value: float | None, most: float) -> list[str]:
    if value is None:
        return [f'<text class="note" x="{x}" y="{y + 15}">failed</text>']
    length = max(1, round((PANEL - NUMBER_ROOM) * value / most))
    kind = "ours" if result.system.module == "brainq" else "bar"
    number = f"{value:.0f}" if value >= 100 else f"{value:.1f}"
    return [
        f'<rect class="{kind}" x="{x}" y="{y}" width="{length}" height="{BAR}" rx="2"/>',
        f'<text x="{x + length + 6}" y="{y + 15}">{number}</text>',
    ]
