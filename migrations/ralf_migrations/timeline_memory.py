"""Reads timeline-memory.md, an agent's long-term memory, in both shapes: `timeline_yaml`, `timeline_plain`.

Family A has its state in a fence of YAML, family B in Markdown. What other fences hold are templates and examples, and
so is what stands in comments: neither is state, however it looks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ralf.briefing.fence import OWN_OUTPUT
from ralf.runs import markdown
from ralf_migrations import timeline_plain, timeline_yaml
from ralf_migrations.places import Kind
from ralf_migrations.reading import Reading, Source, beginning, opened


def _looks(path: Path) -> bool:
    text = beginning(path)
    return timeline_yaml.TOP in text or timeline_plain.looks(text)


KIND = Kind(("timeline-memory.md", "*timeline-memory.md", "timeline-memory-*.md"), ".md", _looks)


def read(source: Source) -> Reading:
    """What a memory comes to: the work as it stands, and a checkpoint for each run that it tells of."""
    if source.text.startswith(OWN_OUTPUT):
        kept = source.path.with_name(f"{source.path.stem}.backup{source.path.suffix}")
        if not kept.is_file():
            return Reading("left", "view", why="a view of what ralf keeps: nothing that is not known")
        source = replace(opened(source.project, kept), path=source.path, name=source.name)  # what had stood there
    lines = markdown.titled(markdown.lines_of(source.text))
    fences = markdown.fences_of(lines)
    state = timeline_yaml.state_in(lines, fences)
    if state is not None:
        return timeline_yaml.read(source, lines, fences, state)
    if timeline_plain.looks(source.text):
        return timeline_plain.read(source, lines, fences)
    return Reading("left", "unknown", why="neither a fence with `timeline_memory` nor `## Current Assignment`")
