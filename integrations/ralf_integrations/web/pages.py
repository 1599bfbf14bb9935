"""The pages by their addresses: each reads what it shows, and fills a template. What fails is a page, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from ralf.agent import get_run, signals
from ralf.brief import left_out
from ralf.errors import RalfError, UsageError
from ralf.finding.reader import get_context
from ralf.finding.search import SearchHit, search
from ralf.memory import provenance
from ralf.memory.model import DEFAULT_AGENT
from ralf.project import Project
from ralf.route import history
from ralf.route.why import why
from ralf.text import cleaning
from ralf_integrations.web import actions, home, live, rendering, routes, sessions, work
from ralf_integrations.web.access import Access
from ralf_integrations.web.reading import Reader, paged
from ralf_integrations.web.sessions import Sessions

MOST_SENT = 64 << 10
"""Bytes of a form."""

_MOST_WORDS, _MOST_HITS = 400, 15  # characters of a search, and what it finds

_STATUS = {2: 400, 3: 404, 4: 500, 5: 409}
"""The status of an answer, by the exit status that the command line has for the error."""

_RULES, _TRIED, _CHOICES = ("rule",), ("failed-approach",), ("decision",)


@dataclass(frozen=True)
class Pages:
    """All pages of one server."""

    reader: Reader
    sessions: Sessions
    access: Access

    def addresses(self) -> list[BaseRoute]:
        """Which address shows what."""
        shown: tuple[tuple[str, Callable[[Request], Response]], ...] = (
            ("/", self.home),
            ("/sessions", self.all_sessions),
            ("/session", self.session),
            ("/routes", self.all_routes),
            ("/routes/{route}", self.route),
            ("/routes/{route}/decisions", self.decisions),
            ("/routes/{route}/files", self.files),
            ("/routes/{route}/why/{id}", self.why),
            ("/routes/{route}/diff", self.diff),
            ("/tasks", self.tasks),
            ("/task", self.task),
            ("/memory", self.memory),
            ("/memory/item", self.memory_item),
            ("/runs", self.runs),
            ("/run", self.run),
            ("/search", self.search),
        )
        done: tuple[tuple[str, Callable[..., str]], ...] = (
            ("/routes/{route}/decide", actions.decide),
            ("/routes/{route}/drop", actions.drop),
            ("/nudge", actions.nudge),
            ("/memory/add", actions.remember),
            ("/memory/accept", actions.accept),
            ("/memory/drop", actions.refuse),
        )
        return [
            *(Route(path, self._page(show), methods=["GET"]) for path, show in shown),
            *(Route(path, self._action(act), methods=["POST"]) for path, act in done),
            Route("/changes", self.changes, methods=["GET"]),
            Mount("/static", StaticFiles(directory=rendering.HERE / "static"), name="static"),
        ]

    # ---- how a page, an action and a failure answer ----

    def _page(self, show: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                return show(request)
            except (RalfError, OSError) as error:
                return self.failed(error)

        return answer

    def _action(self, act: Callable[..., str]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            form = await _form(request)
            if form is None:
                return PlainTextResponse("error: ralf web: a form of at most 64 KiB was expected\n", 413)
            if not self.access.is_ours(form.get("form_token", "")):
                return PlainTextResponse("error: ralf web: this form is not of a page of this server\n", 403)
            if not self.access.is_persons:
                what = "no person has started this server at a terminal: its pages only read"
                return self.failed(UsageError("ralf web", what, "start it yourself, in a terminal of your own"), 403)
            of = request.path_params.get("route") or form.get("session", "") or form.get("agent", "")
            try:
                where = await run_in_threadpool(lambda: act(self.reader.project(), of, form))
            except (RalfError, OSError) as error:
                return self.failed(error)
            return RedirectResponse(self.access.home + where, 303)

        return answer

    def failed(self, error: Exception, status: int | None = None) -> HTMLResponse:
        """The page of an error: the path or route, what is wrong, and what to type."""
        known = _STATUS.get(error.exit_status, 500) if isinstance(error, RalfError) else 500
        hint = getattr(error, "hint", "")
        return self._html("error.html", "", status=known if status is None else status, error=str(error), hint=hint)

    def not_found(self, request: Request, error: Exception) -> Response:
        """The page for an address that shows nothing, or to which nothing can be sent."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        path = request.url.path.removeprefix(self.access.home)
        return self.failed(UsageError(path[:100], "there is no such page"), status)

    def _html(self, template: str, here: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A page below `here` in the navigation, which is also the topic of whose changes an open page is told."""
        token = self.access.form_token if self.access.is_persons else ""
        common = {"home": self.access.home, "project": self.reader.name, "form_token": token, "done": "", "topic": here}
        return HTMLResponse(rendering.render(template, here=here, **(common | values)), status)

    # ---- what happened, and the sessions ----

    def home(self, request: Request) -> Response:
        """What waits for the person, and what happened within a day."""
        waits, happened = home.shown(self.reader.project(), self.sessions.newest())
        return self._html("home.html", "home", waits=waits, happened=happened)

    def all_sessions(self, request: Request) -> Response:
        """Every session: how full, when saved, who is stuck, silent or parked."""
        look = self.sessions.newest()
        return self._html("sessions.html", "sessions", look=look, page=paged(look.sessions, _number(request), 20))

    def session(self, request: Request) -> Response:
        """One session: its window, and what it was handed."""
        found = self.sessions.find(request.query_params.get("id", ""))
        arrivals = sessions.arrivals(self.reader.project(), found.session)
        return self._html("session.html", "sessions", one=found, arrivals=arrivals, done=_done(request))

    # ---- routes ----

    def all_routes(self, request: Request) -> Response:
        """The routes, the one with the newest checkpoint first."""
        words = request.query_params.get("q", "")[:_MOST_WORDS]
        page, total = routes.listed(self.reader.project(), _number(request), words)
        return self._html("routes.html", "routes", page=page, total=total, words=words)

    def route(self, request: Request) -> Response:
        """A route: the brief at a budget, what has arrived of it, checkpoints, decisions, rules, files."""
        project, name = self.reader.project(), _route(request)
        context = get_context(name, root=project)
        budget, configured = routes.budget_of(project, request.query_params.get("budget", ""))
        brief, fallen = left_out.brief(context, budget)
        chosen = routes.lineage(context.decisions, _CHOICES)
        working, received = sessions.of_route(project, context.route)
        return self._html(
            "route.html",
            "routes",
            context=context,
            brief=brief,
            left_out=fallen,
            budget=budget,
            configured=configured,
            least=routes.LEAST_BUDGET,
            most=routes.MOST_BUDGET,
            sessions=working,
            received=received,
            lines=chosen[:20],
            total_lines=len(chosen),
            rules=routes.lineage(context.decisions, _RULES)[:40],
            tried=routes.lineage(context.decisions, _TRIED)[:20],
            done=_done(request),
        )

    def decisions(self, request: Request) -> Response:
        """All decisions of a route, in pages."""
        context = get_context(_route(request), root=self.reader.project())
        lines = routes.lineage(context.decisions, (*_CHOICES, *_RULES, *_TRIED))
        return self._html("decisions.html", "routes", context=context, page=paged(lines, _number(request)))

    def files(self, request: Request) -> Response:
        """All files, commands and errors of a route."""
        context = get_context(_route(request), root=self.reader.project())
        page = paged(context.facts.paths[::-1], _number(request))
        return self._html("files.html", "routes", context=context, page=page)

    def why(self, request: Request) -> Response:
        """The lines of the transcript behind a decision or a checkpoint."""
        reason = why(_route(request), request.path_params["id"][:40], root=self.reader.project())
        page = paged(reason.quotes, _number(request), 20)
        return self._html("why.html", "routes", topic="", reason=reason, page=page)

    def diff(self, request: Request) -> Response:
        """What changed between two checkpoints, by decision and field."""
        project, asked = self.reader.project(), request.query_params
        before, after = (asked.get(name, "")[:40] or None for name in "ab")
        found = history.diff(_route(request), before, after, root=project)
        labels = [entry.checkpoint_id for entry in history.at_present(project, found.route).checkpoint_history]
        moments = dict.fromkeys(("r0", *labels, history.NOW, found.before, found.after))
        return self._html("diff.html", "routes", topic="", route=found.route, found=found, moments=moments)

    # ---- tasks, memory, runs, search ----

    def tasks(self, request: Request) -> Response:
        """The sequence of the tasks, with its checkpoints, leases and evidence."""
        return self._html("tasks.html", "tasks", found=work.sequence(self.reader.project(), _number(request)))

    def task(self, request: Request) -> Response:
        """One task: what is to be done, what it waits for, who has tried it, what came of it, and what proves it."""
        found = work.task(self.reader.project(), request.query_params.get("id", "")[:200])
        return self._html("task.html", "tasks", found=found, state=found.state)

    def memory(self, request: Request) -> Response:
        """What an agent has learned."""
        asked, kind = request.query_params, request.query_params.get("kind", "")[:20]
        found = work.remembered(self.reader.project(), asked.get("agent", "")[:80], kind, _number(request))
        return self._html("memory.html", "memory", found=found, kind=kind, done=_done(request))

    def memory_item(self, request: Request) -> Response:
        """One item: what made it, and the lines behind it."""
        agent = request.query_params.get("agent", "")[:80] or DEFAULT_AGENT
        found = provenance.why(self.reader.project(), agent, request.query_params.get("id", "")[:80])
        return self._html("memory_item.html", "memory", topic="", found=found, agent=agent)

    def runs(self, request: Request) -> Response:
        """The runs of agents."""
        page, found = work.runs(self.reader.project(), _number(request))
        return self._html("runs.html", "runs", page=page, found=found)

    def run(self, request: Request) -> Response:
        """A run, by step, and the signals that were sent to it."""
        project, name = self.reader.project(), request.query_params.get("name", "")[:80]
        steps = [get_run(name, step, root=project) for step in get_run(name, root=project).steps]
        sent = paged([*signals.sent_to(project, name)][::-1], _number(request))
        return self._html("run.html", "runs", steps=steps, signals=sent)

    def search(self, request: Request) -> Response:
        """What is known about some words."""
        words = request.query_params.get("q", "").strip()[:_MOST_WORDS]
        route = request.query_params.get("route", "")[:80]
        hits = hits_of(self.reader.project(), words, route) if words else []
        return self._html("search.html", "search", topic="", words=words, route=route, hits=hits)

    def changes(self, _: Request) -> Response:
        """What tells an open page whether it shows something old."""
        return JSONResponse(live.stamps(self.reader, self.sessions))


def hits_of(project: Project, words: str, route: str = "") -> list[SearchHit]:
    """What is known about some words; a page runs no embedder. RouteNotFound, UsageError."""
    return search(words, route=route or None, root=project, limit=_MOST_HITS, by_meaning=False)


def _number(request: Request) -> int:
    """The page that was asked for; the first one for what is no number."""
    asked = request.query_params.get("page", "")
    return int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 7 else 1


def _done(request: Request) -> str:
    return actions.told(request.query_params.get("done", ""))


def _route(request: Request) -> str:
    """The route of an address. UsageError for what can be none."""
    return cleaning.check(str(request.path_params["route"]))


async def _form(request: Request) -> dict[str, str] | None:
    """The fields of a form; None for one that is too long, or is none."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > MOST_SENT:
            return None
    try:
        return dict(parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=40, errors="strict"))
    except ValueError:
        return None
