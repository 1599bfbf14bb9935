"""Reads `config.local.yaml`: what this machine may run. It runs nothing that the user has not allowed, byte by byte."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralf import config, environment
from ralf.errors import UsageError
from ralf.storage import locks, registry
from ralf.text import digests
from ralf.text.frozen import dataclass, field
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.config import Configured
    from ralf.model import Spend

MODELS = ("claude", "codex", "llm", "command")
"""Command lines that can hand over at a checkpoint: `ralf.refining.command`."""

TIMEOUT = 180
"""Seconds that a model may take."""

A_COMMAND = 'command: ["my-model", "--schema", "{schema}"]'
"""How the file names the command line of a model."""

_CHOICES = {"summarizer": ("", *MODELS), "store": ("", "files", "nats")}

_VARIABLE = regex(r"[A-Za-z_][A-Za-z0-9_]*")

_LEAST_LEASE = 2  # seconds

_TELL_MONEY = ("claude",)  # of the models: docs/models.md

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


@dataclass(frozen=True, slots=True)
class LocalConfig:
    """The settings of `config.local.yaml`, described as in `ralf.config.Config`.

    summarizer         which model hands over at checkpoints; `claude`, `codex`, `llm` or `command`, "" for none
    command            the command line for `command`, a list of arguments
    arguments          more arguments for a preset, a list
    model              the model's name; "": the tool's own choice
    timeout            time limit of a call, in seconds
    daily_cap          daily spending limit (UTC): `200000 tokens`, `2.50 USD`, or both
    project            a note of the project that the file is for; nothing asks for it
    environment        names of environment variables with API keys that the command needs; other such are left out
    embedder           the command line that turns texts into vectors; () for none
    embedder_timeout   time limit of the embedder for one search, in seconds
    verify_commands    whether the `verify:` commands of this project's tasks may be run; `true` or `false`
    verify_timeout     time limit of a `verify:` command, in seconds
    store              where journals and blobs are kept; "" or `files`, `nats`
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
        return bool(commands or self.store == "nats")

    @property
    def says_something(self) -> bool:
        """Whether the file has any setting: one that runs nothing by itself adds to what is run later."""
        return self != LocalConfig(project=self.project)

    def __post_init__(self) -> None:
        for name in self.environment:
            if not _VARIABLE.fullmatch(name):
                raise UsageError("environment", f"{name!r} is no variable's name", 'environment: ["MY_KEY"]')
        if self.nats_lease < _LEAST_LEASE:
            what = f"{self.nats_lease} s is too short: its holder could not renew it in time"
            raise UsageError("nats_lease", what, "nats_lease: 15")
        cap = self.cap
        if self.summarizer == "command" and not self.command:
            raise UsageError("summarizer", "command names no command", A_COMMAND)
        if self.summarizer not in ("", *_TELL_MONEY) and cap.usd is not None and cap.tokens is None:
            what = f"{self.summarizer} does not tell what it costs: a cap in money alone is never reached"
            raise UsageError("daily_cap", what, "daily_cap: 200000 tokens")

    @property
    def cap(self) -> Cap:
        """What may be spent in a day."""
        return Cap.parse(self.daily_cap)


def load_local_config(path: Path) -> LocalConfig:
    """The local configuration in a file, the defaults where there is none; whether it may run anything is not asked.

    UsageError when somebody else could have written it, for an unknown key or a value that makes no sense; Damaged
    when it is no mapping.
    """
    return _parsed(path, registry.content_of(path))


def _parsed(path: Path, content: bytes | None) -> LocalConfig:
    if content is None:
        return LocalConfig()
    return config.made_of(LocalConfig, path, registry.text_of(path, content), _CHOICES)


def local_config_of(project: Configured) -> LocalConfig:
    """What this machine may run for a project. UsageError for a file that has anything run and that the user has not
    allowed; else as for `load_local_config`.

    An archive, a clone or an agent may have written the file, with the user's own name, mode and times. The user's
    consent is therefore to its bytes, for this project's real path, and lies in their own folder (`allow`); a script
    gives it in its environment, `RALF_CONSENT=SHA256`.
    """
    path = project.local_config_file
    found, content = _looked_at(project)
    if content is None or not found.runs_something:
        return found
    if was_allowed(project):
        what = "is not as you allowed it: nothing in it is run"
        raise UsageError(path, what, f"if you changed it: ralf trust {path.name}")
    what = "names what is run as you, and you have not allowed it: an archive or an agent may have written it"
    raise UsageError(path, f"{what}. Nothing in it is run", f"if you did not write it: rm {path}")


def not_allowed(project: Configured) -> bytes | None:
    """The bytes of the file, if it has any setting and the user has not allowed it. Errors: `load_local_config`."""
    return _looked_at(project)[1]


def _looked_at(project: Configured) -> tuple[LocalConfig, bytes | None]:
    """What the file says, and its bytes, if it has any setting and the user has not allowed it."""
    path = project.local_config_file
    content = registry.content_of(path)
    found = _parsed(path, content)
    if content is None or not found.says_something:
        return found, None
    digest = digests.sha256(content).hexdigest()
    if digest == environment.consent():
        return found, None
    if project.owner.accepted.get(path.name) != digest:
        project.owner.refresh()  # another process may have been told since
    return found, None if project.owner.accepted.get(path.name) == digest else content


def was_allowed(project: Configured) -> bool:
    """Whether the user has ever allowed what this machine may run for a project: maybe by another file than today's."""
    return bool(project.owner.accepted.get(project.local_config_file.name) or environment.consent())


def allow(project: Configured, content: bytes) -> None:
    """Record that the user allows what these bytes of the file have run, for this project. Errors as for
    `registry.update`.
    """
    allowed = {project.local_config_file.name: digests.sha256(content).hexdigest()}
    project.owner.update(accepted=project.owner.accepted | allowed)


def set_local(project: Configured, key: str, value: Any) -> bool:
    """Set a key of `config.local.yaml`, mode 0600, and allow what it has run then; whether that changed the file. All
    else in it stays as it is.

    value  as YAML reads it; None: the key is taken out

    UsageError for a value that makes no sense, a line that has no room, and a file with settings that the user has not
    allowed: they would be allowed unseen. Other errors: `local_config_of`, OSError, Busy.
    """
    from ralf.storage import durable

    path = project.local_config_file
    project.prepare()
    with locks.locked(project.folder / "locks" / "config.local.lock", str(path)):
        known = getattr(local_config_of(project), key)
        if not_allowed(project) is not None:
            what = "has settings that you have not allowed: an archive or an agent may have written them"
            raise UsageError(path, what, f"if you wrote them: ralf trust {path.name}; else: rm {path}")
        text = registry.read(path) or ""
        if (list(known) if isinstance(known, tuple) else known) == value or (
            value is None and key not in config.tree_of(path, text)
        ):
            return False
        changed = config.with_setting(path, text, key, value)
        config.made_of(LocalConfig, path, changed, _CHOICES)
        durable.write(path, changed.encode())
        allow(project, changed.encode())
    return True
