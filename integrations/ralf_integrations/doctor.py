"""Whether an installation is whole, end to end: project, clients, hooks, what they have said, what is kept."""

from __future__ import annotations

import json
import shlex
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress

from ralf import config, extensions
from ralf.config.local_config import local_config_of
from ralf.errors import RalfError
from ralf.maintenance.ownership import find_theirs
from ralf.maintenance.verify import unwritable, verify
from ralf.project import Project
from ralf.redact import engine
from ralf.storage import files
from ralf.storage.files import content_of
from ralf.storage.journal import MALFORMED
from ralf.tasks.store import Tasks
from ralf.text.cleaning import clean
from ralf_integrations.blackbox5 import installing
from ralf_integrations.clients import condition
from ralf_integrations.clients.condition import Check
from ralf_integrations.hooks import error_log, handover, receipts, session_registry

_LARGE = 256 << 20  # bytes of journals and evidence that are looked at without being asked
_NEWEST = 100  # routes that are looked at without being asked, where there are more
_RECENT = 7 * 86_400  # seconds
_SESSIONS = 5  # whose receipts are looked at


def examine(project: Project) -> Iterator[Check]:
    """Look at everything; nothing is changed. What goes wrong in a look is itself told."""
    first = (_writing, _project, _system, _file_system, _secrets, _extensions, _servers)
    for look in (*first, condition.checks, installing.checks, _calls, _receipts, _complaints, _tasks, _store):
        try:
            yield from look(project)
        except (RalfError, OSError) as error:
            hint = error.hint if isinstance(error, RalfError) else ""
            yield Check(look.__name__.strip("_").replace("_", " "), "problem", str(error), hint)


def _project(project: Project) -> Iterator[Check]:
    if not project.owner.has_opted_in:
        yield Check("project", "problem", f"{project.root}: not enabled: hooks do nothing", "ralf init")
    elif config.of(project).hooks == "off":
        yield Check("project", "warning", f"{project.config_file}: hooks are switched off", "ralf init")
    else:
        yield Check("project", "ok", f"{project.root}: enabled, hooks are on")


def _system(_: Project) -> Iterator[Check]:
    name = {"linux": "Linux", "darwin": "macOS"}.get(sys.platform, sys.platform)
    if name == "Linux":
        yield Check("system", "ok", "Linux, where everything was tested")
    else:
        hint = "docs/internals.md#guarantees, Known limits"
        yield Check("system", "warning", f"{name}: nothing was tested there", hint)


def _file_system(project: Project) -> Iterator[Check]:
    files.check(project.folder)
    yield Check("file system", "ok", "locks and renames can be trusted")


def _servers(project: Project) -> Iterator[Check]:
    """Whether the NATS servers of the project can be reached, and write before they acknowledge: only their monitoring
    ports tell the latter.
    """
    settings = local_config_of(project)
    if settings.store != "nats":
        return
    routes = len(list(project.store.streams("routes/")))
    yield Check("store", "ok", f"NATS servers answer; routes that they keep: {routes}")
    for url in settings.nats_monitoring:
        yield _syncing(url)
    if not settings.nats_monitoring:
        what = "whether the servers write before they acknowledge is not known; if not, a power failure loses records"
        hint = 'nats_monitoring: ["http://127.0.0.1:8222"] in config.local.yaml'
        yield Check("store", "warning", what, hint)


def _syncing(url: str) -> Check:
    """Whether a server writes before it acknowledges."""
    if not url.startswith(("http://", "https://")) or "@" in url:
        what = "nats_monitoring: holds something else than addresses of monitoring ports, which ask for no password"
        return Check("store", "problem", what, 'nats_monitoring: ["http://127.0.0.1:8222"]')
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/jsz", timeout=5) as answer:  # noqa: S310  # see above
            found = json.loads(answer.read(1 << 20))["config"]
        is_always, interval = found.get("sync_always") is True, int(found.get("sync_interval", 0))
    except (OSError, *MALFORMED) as error:
        hint = "http: 8222 in the server's configuration"
        return Check("store", "warning", f"{url}: the monitoring port tells nothing: {type(error).__name__}", hint)
    if is_always:
        return Check("store", "ok", f"{url}: writes before it acknowledges")
    what = f"acknowledges first and writes later: a power failure loses up to {interval / 1e9:.0f} seconds of records"
    return Check("store", "warning", f"{url}: {what}", "sync_interval: always in the server's configuration")


def _writing(project: Project) -> Iterator[Check]:
    refused = unwritable(project)
    if refused:
        rest = f", and {len(refused) - 1:,} more below" if len(refused) > 1 else ""
        what = f"{refused[0]}: may not be written by you{rest}: nothing that happens here is kept"
        place = project.folder if project.folder.exists() else refused[0]
        recursively = "-R " if place == project.folder else ""
        yield Check("writing", "problem", what, f"chmod {recursively}u+rwX {shlex.quote(str(place))}")


def _secrets(_: Project) -> Iterator[Check]:
    if not engine.available():
        yield Check("secrets", "warning", engine.NOT_LOOKED_FOR, "pip install google-re2, where there is a build of it")


def _extensions(_: Project) -> Iterator[Check]:
    for group in extensions.GROUPS:
        list(extensions.ask(group, bool))
    for problem in extensions.problems:
        yield Check("extensions", "problem", str(problem), "mend or uninstall the distribution that declares it")


def _calls(project: Project) -> Iterator[Check]:
    sessions = sorted(session_registry.all_sessions(project), key=lambda one: one.seen)
    if not sessions:
        yield Check("calls", "warning", "no hook has called yet", "start a session in this project, then: ralf doctor")
        return
    last, called = sessions[-1], session_registry.last_called(project)
    what = f"{len(sessions)} session{'s' * (len(sessions) > 1)}; last call {handover.age(called)}"
    yield Check("calls", "ok", f"{what}, of {last.client or 'a client'}")


def _receipts(project: Project) -> Iterator[Check]:
    """Whether what hooks have handed over is in the model's input, by the log of the newest sessions."""
    sessions = sorted(session_registry.all_sessions(project), key=lambda one: one.seen)[-_SESSIONS:]
    found = [(one, text.handed, text.arrived) for one in sessions for text in receipts.arrivals(one)]
    if not found:
        return
    lost = [(one, handed) for one, handed, arrived in found if arrived is False]
    untold = sum(arrived is None for _, _, arrived in found)
    what = f"{len(found) - len(lost) - untold} of {len(found)} texts that were handed over are in the client's log"
    what += f"; of {untold} nobody can tell, for the log is gone" if untold else ""
    if not lost:
        yield Check("receipts", "ok", what)
        return
    one, handed = lost[-1]
    what += f"; not the {handed.what} of {handed.size:,} characters ({handed.event}, session {one.session})"
    yield Check("receipts", "warning", what, f"less {one.transcript}")


def _tasks(project: Project) -> Iterator[Check]:
    if (project.folder.parent / "tasks").is_dir():
        for path, problem in Tasks(project).list(limit=1).damaged:
            yield Check("tasks", "problem", problem, f"mend the file: {path}")


def _complaints(project: Project) -> Iterator[Check]:
    path = error_log.log(project)
    lines: list[str] = []
    with suppress(FileNotFoundError):
        if time.time() - path.stat().st_mtime <= _RECENT:
            lines = clean(content_of(path).decode("utf-8", "replace")).splitlines()
    if lines:
        what = f"{len(lines)} in the last days; the newest: {lines[-1][:300]}"
        yield Check("errors", "warning", what, f"less {path}")
    else:
        yield Check("errors", "ok", "no hook has complained of late")


def _store(project: Project) -> Iterator[Check]:
    files = project.store.files
    size = files.size() if files is not None else 0
    if size > _LARGE:
        yield Check("store", "ok", f"{size / 1e6:,.0f} MB: not looked at here; look with: ralf doctor --store")
        return
    report = verify(newest=_NEWEST, root=project.root)
    damage = [finding for finding in report.findings if finding.damage]
    if damage:
        what = f"{len(damage)} damaged; first {damage[0].path}: {damage[0].what}"
        is_typed = str(damage[0].path) == str(project.config_file)  # which nothing but its writer repairs
        yield Check("store", "problem", what, f"mend it: {damage[0].path}" if is_typed else "ralf doctor --repair")
    else:
        counts = ((len(report.routes), "route"), (report.records, "record"), (report.blobs, "blob"))
        found = ", ".join(f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts)
        rest = f"; {report.passed_over:,} older routes not looked at: ralf doctor --store" if report.passed_over else ""
        yield Check("store", "ok", f"whole: {found}{rest}")
    if theirs := find_theirs(project):
        what = f"{sum(map(len, theirs.values())):,} records are not known to be yours, so they are handed to nobody: "
        yield Check("store", "warning", f"{what}{', '.join(list(theirs)[:4])}", "ralf trust")
