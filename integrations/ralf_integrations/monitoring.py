"""Looks at the NATS servers of a project for `ralf doctor`: can they be reached, and do they write before they
acknowledge? Only their monitoring ports tell the latter.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

from ralf.config.local_config import local_config_of
from ralf.project import Project
from ralf_integrations.clients.condition import Check

_PATIENCE = 5  # seconds
_MOST = 1 << 20  # bytes of an answer
_SECOND = 10**9  # nanoseconds


def checks(project: Project) -> Iterator[Check]:
    """Everything about the servers; nothing for a project that keeps its journal in files. Errors: as of its store."""
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
    if "@" in url:
        what = "nats_monitoring: one of them holds a user or a password: a monitoring port asks for none"
        return Check("store", "problem", what, 'nats_monitoring: ["http://127.0.0.1:8222"]')
    if not url.startswith(("http://", "https://")):
        return Check("store", "problem", f"{url}: is not the address of a monitoring port", "http://127.0.0.1:8222")
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/jsz", timeout=_PATIENCE) as answer:  # noqa: S310  # see above
            found = json.loads(answer.read(_MOST))["config"]
        is_always, interval = found.get("sync_always") is True, int(found.get("sync_interval", 0))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "http: 8222 in the server's configuration"
        return Check("store", "warning", f"{url}: the monitoring port tells nothing: {type(error).__name__}", hint)
    if is_always:
        return Check("store", "ok", f"{url}: writes before it acknowledges")
    what = (
        f"acknowledges first and writes later: a power failure loses up to {interval / _SECOND:.0f} seconds of records"
    )
    return Check("store", "warning", f"{url}: {what}", "sync_interval: always in the server's configuration")
