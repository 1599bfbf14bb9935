"""Templates, and how values look in them. All text is escaped; what nobody would see in it is removed first."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from ralf import __version__
from ralf.text.cleaning import clean, trimmed
from ralf_integrations.web import actions

HERE = Path(__file__).parent

_UNKNOWN = "\N{EN DASH}"
_LONG, _PART = re.compile(r"[^\s<>]{18,}"), re.compile(r"[/_.:=](?=\w)")
_MOST_TEXT = 60_000  # characters of a text that is rendered
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


@cache
def environment() -> Environment:
    """The templates, compiled when they are first used."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        auto_reload=False,
    )
    made.filters.update(when=when, ago=ago, count=count, minutes=minutes, url=url, brief=brief, size=size)
    made.filters.update(markdown=markdown, mark=actions.mark, soft=soft)
    made.globals.update(version=__version__)
    return made


def render(template: str, **values: Any) -> str:
    """A template with these values, as HTML."""
    return environment().get_template(template).render(**values)


def _cleaned(value: object) -> object:
    """Text without control characters and what turns its direction; None as nothing."""
    if value is None:
        return ""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def soft(text: object) -> Markup:
    """A text whose long words, paths and names of tests above all, may go on in the next line where a part ends."""
    escaped = str(escape(clean(str(text))))
    return Markup(_LONG.sub(lambda found: _PART.sub(r"\g<0><wbr>", found[0]), escaped))  # noqa: S704


def brief(text: str, most: int) -> Markup:
    """The text with its end cut, as `trimmed`; `soft`."""
    return soft(trimmed(text, most))


def _moment(value: object) -> datetime | None:
    with suppress(ValueError, OverflowError, OSError):
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC).astimezone() if value else None
        found = datetime.fromisoformat(str(value))
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone()
    return None


def when(value: object, *, full: bool = False) -> Markup:
    """A time, ISO 8601 or seconds since 1970, as the clock on the wall shows it; what is no time as it stands.

    full  with the year: for what is read at another time
    """
    found = _moment(value)
    if found is None:
        return escape(clean(str(value))) if value else Markup("")
    today = datetime.now().astimezone()
    text = f"{found:%H:%M}"
    if full or found.year != today.year:
        text = f"{found.day} {found:%b %Y %H:%M}"
    elif found.date() != today.date():
        text = f"{found.day} {found:%b %H:%M}"
    return Markup('<time datetime="{}">{}</time>').format(found.isoformat(timespec="seconds"), text)


def ago(value: object) -> str:
    """How long ago a time was, `2 h ago`; "" for what is none."""
    found = _moment(value)
    if found is None:
        return ""
    seconds = time.time() - found.timestamp()
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds // unit:,.0f} {name} ago"
    return "just now"


def minutes(value: float | None) -> str:
    """A number of minutes; a dash where nobody knows."""
    if value is None:
        return _UNKNOWN
    if value < 120:
        return f"{value:.0f} min"
    return f"{value / 60:.0f} h" if value < 48 * 60 else f"{value / 1440:.0f} d"


def count(value: float | None) -> str:
    """A number with its thousands apart; a dash where nobody knows."""
    return _UNKNOWN if value is None else f"{value:,.0f}"


def size(value: int) -> str:
    """A number of bytes."""
    return f"{value:,} B" if value < 10_000 else f"{value / 1024:,.0f} KB"


def url(value: object) -> str:
    """A text as a part of an address."""
    return quote(str(value), safe="")


@cache
def _parser() -> MarkdownIt:
    """Markdown in which nothing leads anywhere, and no HTML is more than text."""
    inert = ["autolink", "html_block", "html_inline", "image", "link", "reference"]
    made = MarkdownIt("commonmark", {"html": False}).enable("table").disable(inert)
    made.add_render_rule("text", lambda _, tokens, at, *__: str(soft(tokens[at].content)))
    made.add_render_rule("code_inline", lambda _, tokens, at, *__: f"<code>{soft(tokens[at].content)}</code>")
    return made


@lru_cache(maxsize=32)
def markdown(text: str, below: int = 1, *, keep_lines: bool = False) -> Markup:
    """A text of an agent or a file as HTML; its headings stand below the page's own of this level, none is left out.

    keep_lines  a line of a paragraph stays a line: lines of output are no sentence
    """
    parser = _parser()
    tokens = parser.parse(clean(trimmed(text, _MOST_TEXT)))
    levels = list[int]()
    for token in tokens:
        token.attrs.pop("style", None)  # which columns of a table have, and the policy of the pages forbids
        for inner in (token.children or ()) if keep_lines else ():
            inner.type = "hardbreak" if inner.type == "softbreak" else inner.type
        if token.type == "heading_open":
            levels = [level for level in levels if level < int(token.tag[1])] + [int(token.tag[1])]
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, below + len(levels))}"
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704  # its own tags, all else escaped
