"""A route as one HTML file that needs no server, for a pull request or a mail."""

from __future__ import annotations

from markupsafe import Markup

from ralf.brief.exporting import check_own
from ralf.model import RouteContext
from ralf_integrations.web import rendering
from ralf_integrations.web.routes import lineage


def html(context: RouteContext) -> str:
    """The route as HTML, with its style in it. UsageError for a route of which nothing is this user's."""
    own = check_own(context)
    style = (rendering.HERE / "static" / "style.css").read_text(encoding="utf-8")
    return rendering.render(
        "export.html",
        context=own,
        style=Markup(style),  # noqa: S704  # our own
        lines=lineage(own.decisions, ("decision",)),
        rules=lineage(own.decisions, ("rule",)),
        tried=lineage(own.decisions, ("failed-approach",)),
    )
