"""Which routes a project has, and which one is meant."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Protocol

from ralf import environment, extensions
from ralf.errors import Busy, Damaged, RouteNotFound, UsageError
from ralf.project import Project, find as find_project
from ralf.storage import files, git_files, journal, shared_files
from ralf.storage.files import content_of, open_single_link
from ralf.text import cleaning, digests
from ralf.text.frozen import NamedTuple
from ralf.text.patterns import regex

DEFAULT = "default"

CHOSEN, NAMED, READ = "ralf route", "first prompt", "read first"
"""The rules by which a session has its route: it was chosen in it, its first prompt named it, or its agent read it
before any work.
"""

FIRST_REQUEST = "first request"
"""The rule by which a route is named after the first request of its session."""

BRANCH = "git branch"
"""How the rule begins that took the route from a branch, whose name follows."""

_TOKEN = regex(r"(?=[A-Za-z_]{0,200}[0-9])[A-Za-z0-9_]{20,}")
"""Matches a part of a branch's name that may be a secret: no file is named after one."""

_BY_BRANCH, _BY_REQUEST = ("task", "branch"), ("task", "goal")

_MARKER = regex(r"\[REDACTED:[^\[\]]*+\]")

_NUMBER = regex(r"\d+")

_MAIN_BRANCHES = frozenset({"main", "master", "trunk", "HEAD"})


class Choice(NamedTuple):
    """A route and the rule that chose it."""

    route: str
    rule: str

    @property
    def is_chosen(self) -> bool:
        """Whether somebody has named it: in the call, by the environment, for a loop's run, or for the session."""
        return self.rule not in (FIRST_REQUEST, DEFAULT) and not self.rule.startswith(BRANCH)

    @property
    def is_kept(self) -> bool:
        """Whether it is kept for the session alone, whatever its environment says."""
        return self.rule in (CHOSEN, NAMED, READ, FIRST_REQUEST)


class RouteRule(Protocol):
    """Tells the route that a client's environment means: an entry point of the group `ralf.route_rules`.

    It is asked where no route is named, before the choice for the session; `root` is the project's directory. It
    returns the route and in a few words the rule, as `ralf route` prints it, `$NAME` for an environment variable; None
    where nothing names one. A name that is refused is refused to the user, as one that was typed.
    """

    def __call__(self, root: Path) -> tuple[str, str] | None: ...  # noqa: D102  # the class says it


def names_of(project: Project, shared: Iterable[str] | None = None) -> list[str]:
    """The names of all routes that have a file or a journal, or that clones have shared something of, sorted. `shared`:
    these, where they were read before.
    """
    found = {stream[7:] for stream in project.store.streams("routes/") if stream.count("/") == 1}
    for folder in (project.routes, project.archived_file(DEFAULT).parent):
        with suppress(FileNotFoundError):
            files = {name[:-3] for name in os.listdir(folder) if name.endswith(".md")}  # noqa: PTH208  # one call
            found.update(filter(cleaning.is_valid, files - found))
    if shared is None:
        shared = (file.route for file in shared_files.read(project.folder / shared_files.FOLDER)[0])
    found.update(shared)
    moved = {name for move in moves_of(project) for name in (move.old, move.new)}
    return sorted(name for name in found if name not in moved or _has_records(project, name))


def archived(project: Project) -> frozenset[str]:
    """The names of the routes that are archived: nobody has written to them for long."""
    archiving = project.store.files
    return archiving.archived("routes") if archiving is not None else frozenset()


def names_meant(project: Project) -> list[str]:
    """The names of all routes, and of those that sessions have which were killed before anything was recorded."""
    claimed: list[str] = []
    with suppress(OSError):
        claimed = [name for name in os.listdir(_claim_file(project, DEFAULT).parent) if cleaning.is_valid(name)]  # noqa: PTH208  # one call
    return sorted({*names_of(project), *claimed})


# ---- routes that were renamed ----
# The newest record of the stream `moved/OLD` names the route that was called OLD, and counts while none is called so.


class Move(NamedTuple):
    """A rename of a route: its two names, and the id of the record that tells of it there."""

    old: str
    new: str
    record: str


MOVED = "moved/"
"""How the names of the streams begin that tell of moves."""


def stream_of_move(route: str) -> str:
    """The stream that tells what became of a route of this name, in any case."""
    return f"{MOVED}{route.lower()}"


def move_of(project: Project, route: str) -> Move | None:
    """The last move of a route of this name, in any case; None for none, and where it cannot be read."""
    try:
        return _move_of(project, route)
    except (Damaged, OSError):
        return None


def _move_of(project: Project, route: str) -> Move | None:
    stream = stream_of_move(route)
    # No store on servers is asked: it moves none.
    entry = project.store.newest(stream) if project.store.files is not None else None
    if entry is None:
        return None
    said = journal.parsed(stream, entry).payload
    move = Move(*(str(said.get(name, "")) for name in Move._fields))
    return move if move.old.lower() == route.lower() and move.new and cleaning.is_valid(move.new) else None


def moves_of(project: Project) -> list[Move]:
    """The last move of each route that was renamed."""
    kept = project.store.files
    if kept is None or not kept.path(stream_of_move(DEFAULT)).parent.exists():
        return []
    names = sorted(stream.removeprefix(MOVED) for stream in project.store.streams(MOVED))
    return [move for name in names if (move := move_of(project, name)) is not None]


def renamed(project: Project, route: str) -> str | None:
    """The name of the route that was called so before; None where there is none, or one is called so now."""
    moves = _moves_from(project, route)
    return moves[-1].new if moves and _has_records(project, moves[-1].new) else None


def _moves_from(project: Project, route: str) -> list[Move]:
    """The moves from a name of before to the name of now, in order; none for a route that is called so now."""
    found: list[Move] = []
    name = route
    while (move := move_of(project, name)) is not None and not _has_records(project, move.old):
        if move in found:
            return []
        found.append(move)
        name = move.new
    return found


def check_begun_anew(project: Project, route: str) -> None:
    """For a name that has no record: Busy where its route was renamed a moment ago, DamagedJournal, OSError
    where what tells of that cannot be read. Else a route of this name may begin.
    """
    _move_of(project, route)
    if now := renamed(project, route):
        raise Busy(route, f"was renamed to {now} at this moment", "try again")


def names_before(project: Project, route: str) -> list[str]:
    """The names that a route had before."""
    return [move.old for move in moves_of(project) if move.old != route and renamed(project, move.old) == route]


def streams_of_moves(project: Project, route: str) -> list[str]:
    """The streams that tell of moves to a route, from it, and between names that it had before."""
    own = {route, *names_before(project, route)}
    return [stream_of_move(move.old) for move in moves_of(project) if own & {move.old, move.new}]


def _has_records(project: Project, route: str) -> bool:
    return project.store.head(journal.stream_of(route)) is not None


def strays(project: Project) -> list[Path]:
    """The files beside the route files that end like one and whose name is no route's, such as the conflicted copies
    that a program which syncs folders leaves: nobody reads them.
    """
    try:
        entries = os.listdir(project.routes)  # noqa: PTH208  # names alone, in one call
    except FileNotFoundError:
        return []
    found = (name for name in entries if name.endswith(".md") and not name.startswith("."))
    return [project.routes / name for name in sorted(found) if not cleaning.is_valid(name.removesuffix(".md"))]


def known(project: Project, route: str) -> str | None:
    """The name under which a route exists: its own, one that differs from it only in case, or the one that it has now,
    where it was renamed; None for none of these. UsageError for a refused name.
    """
    cleaning.check(route)
    has_file = os.path.lexists(project.live_file(route)) or os.path.lexists(project.archived_file(route))
    if has_file and move_of(project, route) is None:
        return route
    found, wanted = names_of(project), route.casefold()
    if route in found:
        return route
    return next((name for name in found if name.casefold() == wanted), None) or renamed(project, route)


def existing(project: Project, route: str) -> str:
    """The name under which a route exists; RouteNotFound where it does not, UsageError for a refused name."""
    found = known(project, route)
    if found is None:
        raise not_found(project, route)
    return found


def find(route: str, root: str | os.PathLike[str] | None) -> tuple[Project, str]:
    """The project at or above `root` and the name under which a route exists there; errors as for `existing`."""
    project = find_project(root)
    return project, existing(project, route)


def not_found(project: Project, route: str) -> RouteNotFound:
    """The error that there is no such route, with up to three names that begin so or resemble it."""
    import difflib  # only a name that is not found pays for it

    by_folded = {name.casefold(): name for name in names_of(project)}
    longer = sorted(name for name in by_folded if name.startswith(route.casefold()))
    found = [*longer, *difflib.get_close_matches(route.casefold(), by_folded, n=3, cutoff=0.7)]
    return RouteNotFound(route, tuple(by_folded[name] for name in dict.fromkeys(found))[:3])


def check_new(project: Project, route: str) -> str:
    """The name to write to: `route` itself, if it exists or may be made, or the one that it has now, where it was
    renamed. UsageError for a refused name, and for one that differs only in case from one that exists.
    """
    found = known(project, route)
    if found is not None and found != route:
        if found.casefold() != route.casefold():
            return found
        raise UsageError(route, f"differs only in case from the route {found}", f"ralf show {found}")
    return route


def check_order(project: Project, route: str, text: str, command: str) -> None:
    """UsageError where ROUTE and TEXT were typed in the other order: the text is a route, and the route is none."""
    name = known(project, text) if cleaning.is_valid(text) else None
    if name is not None and not (cleaning.is_valid(route) and known(project, route)):
        hint = f"{command} {name} {shlex.quote(cleaning.one_line(route))}"
        raise UsageError(name, "is a route, which comes before the text", hint)


def check_typed(project: Project, route: str, *, is_new: bool = False) -> str:
    """The name that somebody has typed, as `check_new` has it; UsageError, "did you mean", for one of no route that is
    a slip of the pen away from one: one edit, from six characters two, with the same numbers in it. `TASK-01` has the
    number of `TASK-001`, and `TASK-0O1` looks like it; `TASK-002` and `API-v2` are other names.

    is_new  it is meant as it is typed
    """
    found = check_new(project, route)
    if is_new or found == choose(project).route:
        return found
    if near := near_to(project, found):
        raise UsageError(found, f"did you mean {' or '.join(near)}? There is no route {found}", "to make it: --new")
    return found


def near_to(project: Project, route: str) -> list[str]:
    """The routes that a name is a slip of the pen away from; none for a route's own name."""
    if known(project, route) is not None:
        return []
    return [name for name in names_of(project) if _is_slip(name.casefold(), route.casefold())]


_ALIKE = str.maketrans("oli", "011")


def _is_slip(name: str, typed: str) -> bool:
    if name.translate(_ALIKE) == typed.translate(_ALIKE):
        return True
    numbers, others = _NUMBER.findall(name), _NUMBER.findall(typed)
    is_same = len(numbers) == len(others) and all(map(_is_same_number, numbers, others))
    return is_same and _is_near(name, typed, min(2, min(len(name), len(typed)) // 3))


def _is_same_number(one: str, other: str) -> bool:
    """Whether two texts of digits are one number, or differ in length though one is filled up with zeros."""
    is_filled = any(len(text) > 1 and text[0] == "0" for text in (one, other))
    return one.lstrip("0") == other.lstrip("0") or (is_filled and len(one) != len(other))


def _is_near(one: str, other: str, edits: int) -> bool:
    """Whether so many edits make one text of the other: a character more, less or another."""
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    if not one or not other or not edits:
        return len(one) + len(other) <= edits
    pairs = (one[1:], other), (one, other[1:]), (one[1:], other[1:])
    return any(_is_near(*pair, edits - 1) for pair in pairs)


def choose(project: Project, named: str | None = None, *, session: str | None = None) -> Choice:
    """The route that is meant: the one that is named, else by the rules of extensions, the one that the session has,
    the git branch, else `default`; `route_by` of the configuration leaves out some of these.

    session  the client's id of the session; None: that of the client that runs us

    A branch name that is no route name becomes a slug; a name from anywhere else that is refused raises UsageError. A
    route that was renamed is meant by its earlier name, too.
    """
    choice = _chosen(project, named, session)
    if move_of(project, choice.route) is None:
        return choice
    return choice._replace(route=known(project, choice.route) or choice.route)


def _chosen(project: Project, named: str | None, session: str | None) -> Choice:
    if named:
        return Choice(cleaning.check(named), "named")
    if meant := next(filter(None, extensions.ask(extensions.ROUTE_RULES, lambda rule: rule(project.root))), None):
        return Choice(cleaning.check(meant[0]), meant[1])
    return kept(project, session) or of_branch(project, git_files.branch(project.root)) or Choice(DEFAULT, DEFAULT)


def kept(project: Project, session: str | None = None) -> Choice | None:
    """The route that a session has, and why; None for one that has none yet, or by a rule that `route_by` leaves out.

    session  None: that of the client that runs us (of this project, where it names none)
    """
    try:
        route, _, rule = content_of(_session_file(project, session)).decode("ascii").strip().partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    choice = Choice(route, rule or CHOSEN)
    by = _by(project)
    if choice.rule == FIRST_REQUEST and by not in _BY_REQUEST:
        return None
    if choice.rule.startswith(BRANCH) and by not in _BY_BRANCH:
        return None
    return choice if cleaning.is_valid(route) else None


def of_branch(project: Project, branch: str) -> Choice | None:
    """The route that a git branch names; None for the main one, for none, and where `route_by` leaves the rule out."""
    if not branch or branch in _MAIN_BRANCHES or _by(project) not in _BY_BRANCH:
        return None
    branch = _TOKEN.sub(lambda found: digests.sha256(found[0].encode()).hexdigest()[:8], branch)
    return Choice(cleaning.slug(branch), f"{BRANCH} {branch if branch.isascii() else ascii(branch)}")


def of_past(
    project: Project, *, session: str, branch: str, requests: Iterable[str], given: Container[str] = frozenset()
) -> Choice:
    """The route of a session that is over, by the rules of `choose` and `name`; writes nothing. What the environment
    and the checkout say now is not asked.

    branch    the git branch on which it worked, "" for none
    requests  what it was asked for first, redacted, in order
    given     names that other sessions get, which have no file yet
    """
    if found := kept(project, session) or of_branch(project, branch):
        return found
    for request in requests if names_sessions(project) else ():
        if task := task_named(request):
            return Choice(task, NAMED)
        names = _free_names(project, request)
        if made := next((one for one in names if one not in given and not _is_anothers(project, one, session)), ""):
            return Choice(made, FIRST_REQUEST)
    return Choice(DEFAULT, DEFAULT)


def use(project: Project, route: str, *, session: str | None = None, rule: str = CHOSEN) -> None:
    """Make a route the session's; None: of the client's that runs us (of this project, where it names none).

    rule  why
    """
    from ralf.storage import durable

    project.prepare()
    path = _session_file(project, session)
    files.make(path.parent)
    durable.write(path, f"{cleaning.check(route)}\n{rule}\n".encode())


def name(project: Project, request: str, *, session: str, redact: Callable[[str], str]) -> str:
    """Name a session's route after its first request; no other session has or gets that name.

    redact  removes secrets from the request; not called where no name is needed

    Returns "" where the request makes no name, or `route_by` asks for none. A session that has a route keeps it.
    """
    if not names_sessions(project):
        return ""
    if found := kept(project, session):
        return found.route
    for made in _free_names(project, redact(request)):
        if _claimed(project, made, session):
            use(project, made, session=session, rule=FIRST_REQUEST)
            return made
    return ""


def number(project: Project, *, session: str) -> str:
    """Name the route of a session none of whose requests makes a name: `work-1a2b3c4d`. A session that has a route
    keeps it; "" where `route_by` asks for none.
    """
    digest = digests.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return name(project, f"work {digest}", session=session, redact=str)


TASK_ID = r"(?:(?i:TASK)-[A-Za-z0-9]{1,20}|[A-Za-z][A-Za-z0-9_-]{0,40}[-_][A-Za-z]{0,8}\d[A-Za-z0-9]{0,20})"
"""How ids of tasks are written, here and elsewhere: `TASK-7k3q`, `PROJ-7`."""

_TASK = regex(rf"\s*(?:[Tt]ask\s+({TASK_ID})|(TASK-[A-Za-z0-9]{{1,20}}))\s*:")


def task_named(request: str) -> str:
    """The id of the task with which a request such as `Task PROJ-7: …` or `TASK-042: …` begins, "" for any other."""
    found = _TASK.match(request)
    name = (found[1] or found[2]) if found else ""
    return name if cleaning.is_valid(name) else ""


def names_sessions(project: Project) -> bool:
    """Whether a session that has no route gets one of its own: else `default` is the route of them all."""
    return _by(project) in _BY_REQUEST


def _free_names(project: Project, request: str) -> Iterator[str]:
    """The names of no route that a redacted request makes, the one without a number first; none where it makes none."""
    readable = cleaning.readable(_MARKER.sub(" ", request))
    taken = {name.casefold() for name in (*names_of(project), DEFAULT)} if readable else set()
    for number in count(1) if readable else ():
        made = readable if number == 1 else f"{readable}-{number}"
        if made not in taken and known(project, made) is None:
            yield made


def _claimed(project: Project, route: str, session: str) -> bool:
    """Whether a name is this session's: the first one to make its file has it."""
    project.prepare()
    path = _claim_file(project, route)
    files.make(path.parent)
    try:
        with open(path, "x", opener=open_single_link, encoding="utf-8") as file:
            file.write(cleaning.slug(session))
    except FileExistsError:
        return not _is_anothers(project, route, session)
    return True


def _is_anothers(project: Project, route: str, session: str) -> bool:
    """Whether another session has claimed a name."""
    try:
        return content_of(_claim_file(project, route)) != cleaning.slug(session).encode()
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _by(project: Project) -> str:
    """The configured `route_by`; the configuration is parsed only where it says one."""
    try:
        if b"route_by" not in content_of(project.config_file):
            return _BY_REQUEST[0]
    except OSError:
        return _BY_REQUEST[0]
    from ralf import config

    return config.of(project).route_by


def _claim_file(project: Project, route: str) -> Path:
    return project.cache / "named" / "routes" / route


def _session_file(project: Project, session: str | None) -> Path:
    """The file of the cache that names a session's route, and the rule."""
    name = environment.session() if session is None else session
    return project.cache / "chosen" / cleaning.slug(name or "project")
