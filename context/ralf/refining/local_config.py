"""Reads `config.local.yaml` (what this machine may run), and sums what models have cost."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralf import config, environment, routing
from ralf.errors import Damaged, UsageError
from ralf.format.codec import from_tree, to_tree
from ralf.model import Spend
from ralf.project import Project
from ralf.route import state
from ralf.route.fold import IN_A_ROW
from ralf.route.load import load_state
from ralf.storage import journal, registry
from ralf.storage.files import content_of
from ralf.storage.journal import MALFORMED
from ralf.summarize import MODELS
from ralf.summarize.command import TIMEOUT, Command, named
from ralf.text.patterns import regex

# --------------------
# `config.local.yaml`: only the user's own file counts, never one that came with a clone.


_VARIABLE = regex(r"[A-Za-z_][A-Za-z0-9_]*")

_ON_THE_DISK = ("", "files")

NATS = ("nats", "files+nats")
"""The stores that need NATS servers."""

_STORES = (*_ON_THE_DISK, *NATS)

_LEAST_LEASE = 2  # seconds

_TELL_MONEY = ("claude",)  # of the models: docs/summarizers.md


@dataclass(frozen=True, slots=True)
class LocalConfig:
    """The settings of `config.local.yaml`, as those of `ralf.config.Config` are told.

    summarizer         which model hands over at checkpoints; `claude`, `codex`, `llm` or `command`, "" for none
    command            the command line for `command`, a list of arguments
    arguments          more arguments for a preset, a list
    model              the model's name; "": the tool's own choice
    timeout            time limit of a call, in seconds
    daily_cap          daily spending limit (UTC): `200000 tokens`, `2.50 USD`, or both
    project            the project's real path; without it nothing is run, for the file may have come in an archive
    environment        names of environment variables with API keys that the command needs; other such are left out
    embedder           the command line that turns texts into vectors; () for none
    embedder_timeout   time limit of the embedder for one search, or one look into a memory, in seconds
    redaction_key      the key of an earlier version; 64 hexadecimal digits
    verify_commands    whether the `verify:` commands of this project's tasks may be run; `true` or `false`
    verify_timeout     time limit of a `verify:` command, in seconds
    store              where journals and blobs are kept; "" or `files`, `nats`, `files+nats`
    nats_servers       URLs of the NATS servers, a list
    nats_project       the project's name on the servers
    nats_replicas      servers that keep each record
    nats_lease         seconds after which a holder that shows no sign of life loses a run
    nats_user          user name on the servers
    nats_password      password on the servers
    nats_creds         absolute path of a `.creds` file, instead of a user and a password
    nats_ca            path of the certificates that vouch for the servers; "": those of the system
    nats_certificate   path of your own certificate, for servers that ask for one
    nats_key           absolute path of its key, mode 0600
    nats_monitoring    URLs of their monitoring ports, a list, for `ralf doctor`
    """

    summarizer: str = ""
    command: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    model: str = ""
    timeout: int = TIMEOUT
    daily_cap: str = ""
    project: str = ""
    environment: tuple[str, ...] = ()
    embedder: tuple[str, ...] = ()
    embedder_timeout: int = 20
    redaction_key: str = ""
    verify_commands: bool = False
    verify_timeout: int = 600
    store: str = ""
    nats_servers: tuple[str, ...] = field(default=(), repr=False)
    nats_project: str = ""
    nats_replicas: int = 3
    nats_lease: int = 15
    nats_user: str = ""
    nats_password: str = field(default="", repr=False)
    nats_creds: str = ""
    nats_ca: str = ""
    nats_certificate: str = ""
    nats_key: str = ""
    nats_monitoring: tuple[str, ...] = field(default=(), repr=False)

    @property
    def runs_something(self) -> bool:
        """Whether the file has anything run, or what is recorded sent somewhere."""
        commands = self.summarizer or self.command or self.embedder or self.verify_commands
        return bool(commands or self.store not in _ON_THE_DISK)

    @property
    def cap(self) -> Cap:
        """What may be spent in a day."""
        return Cap.parse(self.daily_cap)

    def command_of(self, name: str) -> Command:
        """The command line behind a name. UsageError for one that is not known, or `command` without one."""
        if name != "command":
            arguments = self.arguments if name == self.summarizer else ()
            return named(name, model=self.model, arguments=arguments, timeout=self.timeout, keeps=self.environment)
        if not self.command:
            line = 'command: ["my-model", "--schema", "{schema}"]'
            raise UsageError("config.local.yaml", "names no command", f"write into the file: {line}")
        return Command("command", self.command, model=self.model, timeout=self.timeout, keeps=self.environment)


def load_local_config(path: Path) -> LocalConfig:
    """The local configuration in a file, the defaults where there is none.

    UsageError when somebody else could have written it, for an unknown key or a value that makes no sense; Damaged
    when it is no mapping.
    """
    text = registry.read(path)
    return LocalConfig() if text is None else _parse(path, text)


def _parse(path: Path, text: str) -> LocalConfig:
    found = config.made_of(LocalConfig, path, config.tree_of(path, text), _value, text)
    for name in found.environment:
        if not _VARIABLE.fullmatch(name):
            raise UsageError(path, f"environment: {name!r} is no variable's name", 'environment: ["MY_KEY"]')
    if found.summarizer not in ("", *MODELS):
        raise UsageError(path, f"summarizer: expected {', '.join(MODELS)}, got {found.summarizer!r}")
    if found.store not in _STORES:
        raise UsageError(path, f"store: expected files, nats or files+nats, got {found.store!r}", "docs/engines.md")
    try:
        _check(found)
    except UsageError as error:
        raise UsageError(path, f"{error.where}: {error.what}".removeprefix("config.local.yaml: "), error.hint) from None
    return found


def _check(found: LocalConfig) -> None:
    if found.nats_lease < _LEAST_LEASE:
        what = f"{found.nats_lease} s is too short: its holder could not renew it in time"
        raise UsageError("nats_lease", what, "nats_lease: 15")
    cap = found.cap
    if found.summarizer:
        found.command_of(found.summarizer)
        if found.summarizer not in _TELL_MONEY and cap.usd is not None and cap.tokens is None:
            what = f"{found.summarizer} does not tell what it costs: a cap in money alone is never reached"
            raise UsageError("daily_cap", what, "daily_cap: 200000 tokens")


def local_config_of(project: Project) -> LocalConfig:
    """What this machine may run for a project. Errors: `load`, `ownfile.check_not_cloned`, `check_meant`."""
    found = load_local_config(project.local_config_file)
    registry.check_not_cloned(project.local_config_file, environment.of_a_model())
    check_meant(project, found)
    return found


def check_meant(project: Project, found: LocalConfig) -> None:
    """UsageError when the file names a command and not this project by its real path: one that came in an archive, with
    the right owner and mode, cannot know where it was unpacked, but `.` and `/proc/self/cwd` mean every place.
    UsageError also for one that was there before the project was opted in.
    """
    if found.runs_something and project.owner.has_not_accepted(project.local_config_file):
        what = "was there before `ralf init`, so an archive may have brought it: nothing in it is run"
        raise UsageError(project.local_config_file, what, "if you wrote it, save it again with a comment added: # mine")
    root = os.path.realpath(project.folder.parent.parent)
    if not found.runs_something or found.project == root:  # never through `/proc` or `/dev`: no real path leads there
        return
    hint = f'if you wrote it, {"change" if found.project else "add"} the line: project: "{root}"'
    if not found.project:
        what = "does not say for which project it is"
    elif os.path.realpath(found.project) == root:
        what = f"project: {found.project!r} is not the real path of this project"
    else:
        what = f"is for {found.project}"
    raise UsageError(project.local_config_file, f"{what}: nothing in it is run", hint)


def choose_summarizer(project: Project, summarizer: str) -> bool:
    """Have a model hand over at checkpoints of a project from now on; whether that changed the file. Only for who has
    said so. All else in the file stays as it is. Errors: as `of`; OSError, Busy.
    """
    return set_local(project, "summarizer", summarizer)


def allow_verify_commands(project: Project) -> bool:
    """Let the `verify:` commands of a project's tasks run from now on: as `choose_summarizer`."""
    return set_local(project, "verify_commands", value=True)


def set_local(project: Project, key: str, value: Any) -> bool:
    """Set a key of `config.local.yaml`, mode 0600, and say in it for which project it is; whether that changed the
    file. All else in it stays as it is.

    value  as YAML reads it; None: the key is taken out

    UsageError for a value that makes no sense, or a line that has no room; other errors: `local_config_of`, OSError,
    Busy.
    """
    from ralf.storage import durable, files

    path = project.local_config_file
    project.prepare()
    with files.locked(project.folder / "locks" / "config.local.lock", str(path)):
        known = getattr(local_config_of(project), key)
        text = registry.read(path) or ""
        if (list(known) if isinstance(known, tuple) else known) == value or (
            value is None and key not in config.tree_of(path, text)
        ):
            return False
        changed = config.with_setting(path, text, "project", os.path.realpath(project.folder.parent.parent))
        changed = config.with_setting(path, changed, key, value)
        _parse(path, changed)
        durable.write(path, changed.encode())
    return True


_QUOTED = ("nats_user", "nats_password", "redaction_key")

_LOGINS = ("nats_servers", "nats_monitoring")  # somebody may have written a password into them: no error repeats it


def _value(path: Path, key: str, value: Any, kind: str) -> Any:
    if kind == "int":
        return config.checked(path, key, value, kind)
    if kind == "bool":
        if not isinstance(value, bool):
            raise UsageError(path, f"{key}: expected true or false, got {value!r}", f"{key}: true")
        return value
    if kind == "str":
        if key in _QUOTED and not isinstance(value, str | None):  # YAML has made a number of it, which is another word
            raise UsageError(path, f"{key}: write it in quotes", f'{key}: "…"')
        return "" if value is None else str(value)
    if not isinstance(value, list) or not all(isinstance(word, str | int | float) for word in value) or not value:
        got = "something else" if key in _LOGINS else repr(value)
        raise UsageError(path, f"{key}: expected a list of arguments, got {got}", f'{key}: ["one", "two"]')
    return tuple(map(str, value))


# --------------------
# What models have cost, read from the routes' records, and whether one may be called again.


_MOST = 1e15  # tokens or dollars

_AMOUNT = regex(r"(?:(\$)\s*)?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d[\d_]*(?:\.\d+)?)\s*(tokens?|usd|dollars?)?\Z", re.I)


@dataclass(frozen=True, slots=True)
class Cap:
    """What may be spent in a day (UTC): tokens, estimates included, and US dollars; None: as much as there is."""

    tokens: int | None = None
    usd: float | None = None

    @classmethod
    def parse(cls, text: str) -> Cap:
        """`200000 tokens`, `2.50 USD`, or both with a comma between; a bare number is tokens."""
        tokens: int | None = None
        usd: float | None = None
        for part in re.split(r",\s+|\s+and\s+", text.strip()) if text.strip() else ():
            found = _AMOUNT.match(part.strip())
            unit = (found[3] or "").lower() if found else ""
            if found is None or (found[1] and unit.startswith("token")):
                raise UsageError(
                    "daily_cap", f"expected tokens or USD, got {part.strip()!r}", "daily_cap: 200000 tokens, 2.50 USD"
                )
            number = found[2].replace("_", "").replace(",", "")
            if not float(number) < _MOST:
                raise UsageError("daily_cap", f"{part.strip()[:40]!r} is more than anybody has", "leave the line out")
            if found[1] or unit.startswith(("usd", "dollar")):
                usd = float(number)
            else:
                tokens = int(float(number))
        return cls(tokens, usd)

    def spent(self, today: Spend) -> str:
        """Why no more may be spent today, "" while something is left."""
        if self.tokens is not None and today.day_tokens >= self.tokens:
            return f"daily cap spent: {today.day_tokens:,} of {self.tokens:,} tokens"
        if self.usd is not None and today.day_cost_usd >= self.usd:
            return f"daily cap spent: ${today.day_cost_usd:.2f} of ${self.usd:.2f}"
        return ""


def now() -> str:
    """The time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def spend_of_route(project: Project, route: str) -> Spend:
    """What models have cost a route; nothing for a route that cannot be read."""
    try:
        state = load_state(project, route)
    except (Damaged, OSError):
        return Spend()
    return state.recorded.context_checkpoint.spend if state is not None else Spend()


def spend_of_project(project: Project) -> dict[str, Spend]:
    """What models have cost each route. Of a journal that stands as it did it is known from the time before."""
    marks = journal.marks(project.store, "routes")
    known = _remembered(project)
    found = {}
    for route in routing.names_of(project):
        mark, spend = known.get(route, ("", _NOTHING))
        found[route] = spend if mark and mark == marks.get(route) else spend_of_route(project, route)
    kept = {route: (marks[route], found[route]) for route in found if route in marks}
    if kept != known:
        _remember(project, kept)
    return found


_NOTHING = Spend()

_SPENDS = "spend.json"

_Kept = dict[str, tuple[str, Spend]]
"""By route, the mark of its journal (`Survey.marks`) and what models have cost it by then."""


def _remembered(project: Project) -> _Kept:
    """What was kept; nothing where it is gone, or not as it was written."""
    try:
        content = content_of(project.cache / _SPENDS)
        _, _, kept = content.partition(b"\n")
        if state.with_sum(kept) != content:
            return {}
        tree = json.loads(kept)
        cost = {route: from_tree(Spend, spend) for route, spend in tree["spends"].items()}
        return {str(route): (str(mark), cost.get(route, _NOTHING)) for route, mark in tree["marks"].items()}
    except (OSError, *MALFORMED):
        return {}


def _remember(project: Project, kept: _Kept) -> None:
    from ralf.storage import durable

    marks = {route: mark for route, (mark, _) in kept.items()}
    spends = {route: to_tree(spend) for route, (_, spend) in kept.items() if spend != _NOTHING}
    content = json.dumps({"marks": marks, "spends": spends}, separators=(",", ":")).encode()
    with suppress(OSError):  # a cache that cannot be written costs time
        project.make_room(project.cache / _SPENDS)
        durable.write(project.cache / _SPENDS, state.with_sum(content))


def as_fields(spend: Spend) -> dict[str, int | float | str]:
    """What models have cost, for a reader: the same names everywhere."""
    return {
        "calls": spend.calls,
        "tokens": spend.tokens,
        "estimated_tokens": spend.estimated_tokens,
        "cost_usd": spend.cost_usd,
        "last_failure": spend.failure,
        "last_success": spend.succeeded,
    }


def total(spends: Iterable[Spend], day: str) -> Spend:
    """The sum of several routes; `day_tokens` and `day_cost_usd` are of this day, and of later ones if the clock was
    put back.
    """
    found = list(spends)
    today = [spend for spend in found if spend.day >= day]
    return Spend(
        calls=sum(spend.calls for spend in found),
        tokens=sum(spend.tokens for spend in found),
        estimated_tokens=sum(spend.estimated_tokens for spend in found),
        cost_usd=round(sum(spend.cost_usd for spend in found), 4),
        day=day,
        day_tokens=sum(spend.day_tokens for spend in today),
        day_cost_usd=round(sum(spend.day_cost_usd for spend in today), 4),
    )


def switched_off(spends: Iterable[Spend], summarizer: str) -> str:
    """Why a model is not asked any more: its last calls, on whichever routes, all failed; "" while it is."""
    mine = [spend for spend in spends if spend.summarizer == summarizer]
    last_success = max((spend.succeeded for spend in mine), default="")
    failed = sorted((when, spend.failure) for spend in mine for when in spend.failed if when > last_success)
    return f"off after {IN_A_ROW} failures in a row: {failed[-1][1]}" if len(failed) >= IN_A_ROW else ""
