"""The prompt that a loop gives each of its agents, told by the section that ralf has put into it: nobody's request."""

from __future__ import annotations

BEGIN = "<!-- ralf: written by `ralf init --client ralf`, taken out with --uninstall{} -->"
"""The first line of the section, with what is to be known when it is taken out."""

END = "<!-- ralf: end -->"

_MARK = BEGIN.partition(",")[0]


def besides(text: str) -> str:
    """What a message says besides such a prompt; `text` itself where it holds no section of ours.

    A document before the section, with a heading first, is the prompt, too. Any other text there is somebody's words.
    """
    kept: list[str] = []  # the first of them is no heading
    at = 0
    while (begin := text.find(_MARK, at)) >= 0 and (end := text.find(END, begin)) >= 0:
        before = text[at:begin]
        if kept or (before.strip() and not before.lstrip().startswith("#")):
            kept.append(before)
        at = end + len(END)
    return "".join([*kept, text[at:]]).strip() if at else text
