"""Charts as SVG, made here: no script draws them. Colours and fonts are classes of the style sheet; every text in them
is escaped, and each chart says in words what it shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from markupsafe import Markup, escape

from ralf_integrations.web.timeline import Timeline

Marks = Sequence[tuple[float, str]]
"""Checkpoints: when, in seconds since 1970, and how each is called."""

_Place = Callable[[float], str]

_WIDTH, _HEIGHT = 720, 150
_SMALL_WIDTH, _SMALL_HEIGHT = 200, 36
_LEFT, _BOTTOM = 40, 20
_FEWEST_POINTS, _FEW_POINTS = 2, 60  # of a chart, and of a small one


def pressure(line: Timeline, window: int, checkpoints: Marks, *, threshold: int, small: bool = False) -> Markup:
    """How full a window was over time, in percent, with checkpoints and compactions on the line; "" for no figures."""
    if len(line.points) < _FEWEST_POINTS or not window:
        return Markup("")
    width, height = (_SMALL_WIDTH, _SMALL_HEIGHT) if small else (_WIDTH, _HEIGHT)
    left, bottom = (0, 2) if small else (_LEFT, _BOTTOM)
    step = max(1, len(line.points) // _FEW_POINTS) if small else 1
    points = [*line.points[::step], line.points[-1]]
    begin = points[0][0]
    last = max([points[-1][0], *(when for when, _ in checkpoints), *line.compactions])
    points.append((last, points[-1][1]))  # a checkpoint ends with a record that tells no figure
    end = max(last, begin + 60)
    top = max(100.0, *(100 * tokens / window for _, tokens in points))

    def across(when: float) -> str:
        return f"{left + (width - left - 5) * (when - begin) / (end - begin):.1f}"

    def down(percent: float) -> str:
        return f"{5 + (height - bottom - 8) * (1 - percent / top):.1f}"

    places = [f"{across(when)},{down(100 * tokens / window)}" for when, tokens in points]
    ground = [f"{across(points[-1][0])},{down(0)}", f"{across(begin)},{down(0)}"]
    parts = [] if small else [*_scale(left, width, down, threshold), *_clock(begin, end, across, height)]
    parts.append(_tag("polygon", kind="area", points=" ".join([*places, *ground])))
    parts.append(_tag("polyline", kind="line", points=" ".join(places)))
    for when in line.compactions:
        if begin <= when <= end:
            ends = {"x1": across(when), "x2": across(when), "y1": "4", "y2": down(0)}
            parts.append(_tag("line", f"compacted {_time(when)}", kind="compaction", **ends))
    kept = [(when, label) for when, label in checkpoints if begin <= when <= end]
    for when, label in kept:
        at = {"cx": across(when), "cy": down(_filled(line, when, window)), "r": "3" if small else "4.5"}
        parts.append(_tag("circle", f"{label} {_time(when)}", kind="checkpoint", **at))
    now = 100 * points[-1][1] / window
    counts = f"{len(kept)} checkpoints and {len(line.compactions)} compactions"
    said = f"Window {now:.0f} % full; {counts} since {_time(begin)}"
    return _svg(width, height, said, parts, "spark" if small else "chart")


def gauge(percent: float | None) -> Markup:
    """A bar that is so full; "" where nobody knows."""
    if percent is None:
        return Markup("")
    kind = "full" if percent >= 80 else "high" if percent >= 60 else "low"
    track = _tag("rect", kind="track", width="100", height="8", rx="4")
    filled = _tag("rect", kind=kind, width=f"{min(100.0, max(0.0, percent)):.1f}", height="8", rx="4")
    return _svg(100, 8, f"{percent:.0f} % full", [track, filled], "gauge")


# ---- parts ----


def _scale(left: int, right: int, down: _Place, threshold: int) -> Iterator[Markup]:
    ends = {"x1": str(left), "x2": str(right)}
    for percent in (0, 50, 100):
        y = down(percent)
        yield _tag("line", kind="axis", y1=y, y2=y, **ends)
        yield _tick(left - 6, float(y) + 4, f"{percent} %", "end")
    y = down(threshold)
    yield _tag("line", f"checkpoint at {threshold} %", kind="threshold", y1=y, y2=y, **ends)


def _clock(begin: float, end: float, across: _Place, height: int) -> Iterator[Markup]:
    for part, anchor in enumerate(("start", "middle", "middle", "middle", "end")):
        when = begin + (end - begin) * part / 4
        yield _tick(float(across(when)), height - 4, _time(when), anchor)


def _filled(line: Timeline, when: float, window: int) -> float:
    """How full the window was at a time, in percent."""
    before = [tokens for at, tokens in line.points if at <= when]
    return 100 * (before[-1] if before else line.points[0][1]) / window


def _tick(x: float, y: float, text: str, anchor: str) -> Markup:
    said = escape(text)
    return Markup('<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, said)


def _tag(name: str, title: str = "", *, kind: str, **attributes: str) -> Markup:
    told = Markup("").join(Markup(' {}="{}"').format(key, value) for key, value in attributes.items())
    inner = Markup("<title>{}</title>").format(title) if title else ""
    return Markup('<{name} class="{kind}"{told}>{inner}</{name}>').format(name=name, kind=kind, told=told, inner=inner)


def _svg(width: int, height: int, said: str, parts: Sequence[Markup], kind: str) -> Markup:
    return Markup(
        '<svg class="{kind}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
        ' aria-label="{said}">{parts}</svg>'
    ).format(kind=kind, width=width, height=height, said=said, parts=Markup("").join(parts))


def _time(when: float) -> str:
    return time.strftime("%H:%M", time.localtime(when))
