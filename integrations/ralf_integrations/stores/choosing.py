"""Opens the store that `config.local.yaml` names. An entry point of the group `ralf.stores`."""

from __future__ import annotations

import os
from contextlib import suppress

from ralf import environment, project as projects
from ralf.errors import RalfError, UsageError
from ralf.project import Project
from ralf.storage.files import content_of
from ralf.storage.journal import Store


def open_named(project: Project) -> Store | None:
    """The store of a project, None where it is files.

    Only a file that this user has allowed names one: what is recorded is sent nowhere on the word of a repository or an
    archive. UsageError where others may read the file, it is not as it was allowed or makes no sense, where the client
    is not installed, and where the user has no key to encrypt with.
    """
    where, owner = project.local_config_file, project.owner
    from ralf.config import local_config  # every command asks `names_servers`, and few names any

    if not owner.has_opted_in or not local_config.was_allowed(project):
        return None
    settings = local_config.local_config_of(project)
    if settings.store != "nats":
        return None
    if not settings.nats_project:
        raise UsageError(where, "names no project for the NATS servers", "nats_project: my-project")
    try:
        from ralf_integrations.stores.nats_link import Address
        from ralf_integrations.stores.nats_store import NatsStore
    except ModuleNotFoundError:
        raise UsageError(where, "store: nats needs its client", "pip install 'ralf-context[nats]'") from None
    login = environment.nats_login() or (settings.nats_user, settings.nats_password, settings.nats_creds)
    certificates = settings.nats_ca, settings.nats_certificate, settings.nats_key
    return NatsStore(
        Address(settings.nats_servers, *login, *certificates),
        settings.nats_project,
        key=bytes.fromhex(owner.key),
        replicas=settings.nats_replicas,
        lease=settings.nats_lease,
    )


_MOST = 1 << 20  # bytes of a configuration


def names_servers(project: Project) -> bool:
    """Whether the store of a project may be one with NATS servers, by a look at one file."""
    try:
        return b"nats" in content_of(project.local_config_file, most=_MOST)
    except OSError:
        return False


def place_file(root: str | os.PathLike[str] | None, route: str) -> None:
    """Make the file of a route anew that was recorded on another machine, for a project that has its journal on NATS
    servers: here it is missing, or shows less. What stands in the way is for the next write to say.
    """
    project = projects.find(root)
    if not names_servers(project):
        return
    from ralf.route.load import load_state
    from ralf.route.write import open_route

    with suppress(RalfError, OSError):
        found = load_state(project, route)
        if found is not None and found.token is not None and found.status in ("missing", "stale"):
            with open_route(project, route):
                pass  # renders after it
