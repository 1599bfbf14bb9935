"""The configuration: one dataclass is its schema, `config.yaml` its file; and how the command is typed in a project."""

from __future__ import annotations

import errno
import os
import re
import stat
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ralf import environment
from ralf.document.yaml_text import meaning
from ralf.errors import Damaged, UsageError
from ralf.storage import registry
from ralf.storage.files import content_of
from ralf.text import digests
from ralf.text.cleaning import quoted
from ralf.text.frozen import dataclass, fields
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from typing import Protocol

    from ralf.storage.registry import Registration


if TYPE_CHECKING:  # to import it would cost a start

    class Configured(Protocol):
        """What a configuration belongs to: a project."""

        @property
        def folder(self) -> Path:
            """The folder of its store."""

        @property
        def config_file(self) -> Path:
            """The project's settings."""

        @property
        def local_config_file(self) -> Path:
            """What this machine may run."""

        @property
        def owner(self) -> Registration:
            """What this user has said of the store."""

        def prepare(self) -> object:
            """Make the folder of the store."""


T = TypeVar("T")

DEFAULT_TOKENS = 50_000

DEFAULT_WINDOW = 200_000

_MOST_TOKENS = 1_000_000_000


_THRESHOLDS = "a number of tokens such as 50000, or a part of the window such as 25%"

_THOUSANDS = regex(r"[0-9]{1,3}(?:,[0-9]{3})+\Z")


@dataclass(frozen=True, slots=True)
class Limits:
    """When a checkpoint falls due; the configuration in plain values.

    tokens    o200k_base tokens since the last checkpoint
    percent   instead of `tokens`: percent of the client's window
    pressure  the part of the client's window that may be full before one is made at once
    window    size of the client's window where the client does not tell it, in tokens
    """

    tokens: int = DEFAULT_TOKENS
    percent: float | None = None
    pressure: float = 0.60
    window: int | None = None

    def __post_init__(self) -> None:
        percent_fits = self.percent is None or 0 < self.percent <= 100
        most = f"at most {_MOST_TOKENS:,}"
        for fits, key, what in (
            (self.tokens >= 1, "threshold", f"{self.tokens} tokens is not a threshold: at least 1"),
            (self.tokens <= _MOST_TOKENS, "threshold", f"{self.tokens} tokens is not a threshold: {most}"),
            (percent_fits, "threshold", f"{self.percent} % is not part of a window: more than 0, at most 100"),
            (0 < self.pressure <= 1, "pressure", f"{self.pressure} is not part of a window: more than 0, at most 1"),
            (self.window is None or self.window >= 1, "window", f"{self.window} tokens is not a window: at least 1"),
        ):
            if not fits:
                raise UsageError(key, what, _THRESHOLDS if key == "threshold" else f"leave {key} out for its default")

    @classmethod
    def parse(cls, threshold: str | int, *, pressure: float = 0.60, window: int | None = None) -> Limits:
        """`threshold` as a person writes it: `50000`, `50_000`, `50,000` or `25%`. Raises UsageError."""
        text = str(threshold).strip().lower()
        try:
            if text.endswith("%"):
                return cls(percent=float(text[:-1]), pressure=pressure, window=window)
            if "," in text and _THOUSANDS.match(text):
                text = text.replace(",", "")
            return cls(tokens=int(text), pressure=pressure, window=window)
        except ValueError as error:
            raise UsageError("threshold", f"{quoted(threshold)} is not a threshold", _THRESHOLDS) from error

    def tokens_of(self, window: int) -> int:
        """Return the tokens that may pass without a checkpoint in a window of this size."""
        return self.tokens if self.percent is None else round(self.percent / 100 * window)

    def due_of(self, window: int) -> int:
        """Return the tokens at which one is due: a tenth sooner, so that the threshold is not passed before a look has
        seen it.
        """
        return max(1, round(0.9 * self.tokens_of(window)))


@dataclass(frozen=True, slots=True)
class Config:
    """What can be set: what each key does, and after a semicolon or a colon its values (docs/config.md says more).

    threshold        most tokens between checkpoints, due a tenth sooner: a number, or a share of the window such as
                     `25%`
    window           context window size in tokens, if the client does not report it
    pressure         usage (%) of the window at which a checkpoint is due; once per crossing
    hand_over_at     usage (%) of the window at which its agent is asked to hand over, once; above 100: never
    hooks            whether hooks do anything in this project; `off`: they do nothing
    summarizer       which summariser to use; `extractive` is built in
    agent_type       the agent type written into new route files
    worktrees        whose store linked git worktrees use; `shared`: that of the main worktree; `isolated`: each its own
    archive_days     days without a record after which a route is archived; 0: never
    redact_patterns  regular expressions of additional text to redact; the first group is the secret, if there is one
    checks           programs whose runs count as checks, besides the known test runners, linters and builds
    redact_personal  whether mail addresses and telephone numbers are redacted, too; `on` or `off`
    route_by         which rules choose a session's route; `task`: all; `goal`: not the git branch; `branch`: not the
                     session's first request; `project`: neither
    inject           what is injected when a session starts; `auto`, `line`, `brief` or `off`
    brief_tokens     maximum tokens of an injected brief; clients take 10,000 characters
    memory           whether hooks use the memory; `off`: they inject nothing from it, and add nothing to it
    health_pressure  usage (%) of the window from which `ralf status --all` warns; with `--nudge` it tells the session
    health_silent    minutes without activity after which an open turn counts as silent
    health_repeats   number of identical failures, or of attempts without change, before a session counts as stuck
    """

    threshold: str = "50000"
    window: int = 200_000
    pressure: int = 60
    hand_over_at: int = 70
    hooks: str = "on"
    summarizer: str = "extractive"
    agent_type: str = ""
    worktrees: str = "shared"
    archive_days: int = 90
    redact_patterns: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    redact_personal: str = "off"
    route_by: str = "task"
    inject: str = "auto"
    brief_tokens: int = 2_500
    memory: str = "on"
    health_pressure: int = 70
    health_silent: int = 10
    health_repeats: int = 3

    def __post_init__(self) -> None:
        _ = self.limits

    @property
    def limits(self) -> Limits:
        """When a checkpoint falls due."""
        return Limits.parse(self.threshold, pressure=self.pressure / 100, window=self.window)

    @property
    def segment_limit(self) -> int:
        """Tokens that a segment has at most."""
        limits = self.limits
        return max(1, limits.tokens_of(limits.window or DEFAULT_WINDOW))

    @property
    def due_at(self) -> int:
        """Tokens since the last checkpoint at which the next one is due, as far as no client has told its window."""
        return self.limits.due_of(self.limits.window or DEFAULT_WINDOW)


_HINT = "mend the file: one `key: value` a line; the keys are in docs/config.md"

_FROM_ZERO = ("archive_days",)

_AT_MOST = {
    "window": _MOST_TOKENS,
    "pressure": 100,
    "archive_days": 36_500,
    "brief_tokens": 1_000_000,
    "health_silent": 525_600,
    "health_repeats": 10_000,
    "timeout": 86_400,
    "embedder_timeout": 86_400,
    "verify_timeout": 604_800,
    "nats_replicas": 100,
    "nats_lease": 86_400,
}
"""The largest numbers that make sense, where they are not percent: more is a slip of the pen."""

_PERCENT = 1_000  # at most; above 100 means never

_MOST = 1 << 20  # bytes

CHOICES = {
    "summarizer": ("extractive",),
    "worktrees": ("shared", "isolated"),
    "route_by": ("task", "goal", "branch", "project"),
    "hooks": ("on", "off"),
    "inject": ("auto", "line", "brief", "off"),
    "memory": ("on", "off"),
    "redact_personal": ("on", "off"),
}
"""The words that a key may have, where only some make sense."""

SECRET = frozenset(("nats_password", "nats_servers", "nats_monitoring"))
"""Settings that are a secret, or may hold one: their values are never told."""

_QUOTED = ("nats_user", "nats_password")

_OF_THE_DISK = (0, errno.EIO, errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def load(path: Path) -> Config:
    """The configuration in a file, the defaults where there is none.

    Damaged when it is no mapping, UsageError for an unknown key or a value that makes no sense; both name the file.
    OSError where the disk or the process has failed, and not the file.
    """
    try:
        stamp, before = registry.stamp_if_settled(os.lstat(path)), _loaded.get(path)
        if stamp and before is not None and before[0] == stamp:
            return before[1]
        text = decoded(path, content_of(path, most=_MOST))
    except FileNotFoundError:
        return Config()
    except OSError as error:
        if error.errno in _OF_THE_DISK:
            raise
        raise Damaged(path, f"cannot be read: {error.strerror}", _HINT) from None
    _loaded[path] = stamp, parse(path, text)
    return _loaded[path][1]


_loaded: dict[Path, tuple[tuple[int, ...], Config]] = {}
"""What files said, with their stamps: a standing process reads one again once it is another."""


def parse(path: Path, text: str) -> Config:
    """The configuration that a text says, which is, or is to be, in the file `path`. Errors: as for `load`."""
    return made_of(Config, path, text, CHOICES)


_HARMLESS = {
    "pressure": (10, 100),
    "hand_over_at": (10, 200),
    "archive_days": (30, 3650),
    "brief_tokens": (200, 2_500),
    "health_pressure": (10, 100),
    "health_silent": (1, 1440),
    "health_repeats": (2, 100),
}
"""What a configuration sets that this user has not accepted, and within which bounds."""


def of(project: Configured) -> Config:
    """The configuration of a project, as far as it is the user's: see `is_believed`. Of any other the harmless keys
    count, within bounds, and the patterns of what is redacted where `redact_patterns_of` says so.

    Errors as for `load`.
    """
    found = load(project.config_file)
    if is_believed(project):
        return found
    bounded = {key: max(low, min(getattr(found, key), high)) for key, (low, high) in _HARMLESS.items()}
    return Config(**bounded, worktrees=found.worktrees, hooks=found.hooks)


def is_believed(project: Configured, content: bytes | None = None) -> bool:
    """Whether this user wrote the configuration, or has accepted it: the project is opted in, the file is not one that
    was there before, and git did not bring it.

    content  the bytes of the file, where they have been read already
    """
    owner = project.owner
    if not owner.has_opted_in:
        return False
    if content is None:
        try:
            content = content_of(project.config_file, most=_MOST)
        except OSError:
            return True
    if not any(line.strip() and not line.lstrip().startswith(b"#") for line in content.splitlines()):
        return True  # it sets nothing
    digest = digests.sha256(content).hexdigest()
    if owner.accepted.get(project.config_file.name) == digest:
        return True
    if owner.unaccepted.get(project.config_file.name) == digest:
        return False
    return not owner.is_brought_by_git(project.config_file, content)


PERSONAL = (
    r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,64}\.[A-Za-z]{2,24}\b",
    r"\+[1-9][0-9]{0,2}(?:[ ().-]{0,2}[0-9]){6,12}\b",
    r"\([2-9][0-9]{2}\) ?[0-9]{3}[ .-][0-9]{4}\b",
    r"\b[2-9][0-9]{2}-[0-9]{3}-[0-9]{4}\b",
    r"\b0[1-9][0-9]{1,4}[/-][0-9]{4,9}\b",
)
"""Mail addresses; telephone numbers with a country code, as written in North America, and with a leading zero."""


def redact_patterns_of(project: Configured) -> tuple[str, ...]:
    """The user's patterns of what is redacted, too, and `PERSONAL` where the configuration says so, whoever wrote it.

    Those that came with a repository are not in force: UsageError before the user has opted in, and after that they
    count for nothing until they are accepted.
    """
    read = load(project.config_file)
    personal = PERSONAL if read.redact_personal == "on" else ()
    found = read.redact_patterns
    if not found or is_believed(project):
        return found + personal
    if not project.owner.has_opted_in:
        what = "its redact_patterns came with the repository and are not in force: nothing is stored without them"
        raise UsageError(project.config_file, what, "look at them; to accept them: ralf init; else remove them")
    return personal


def decoded(path: Path, content: bytes) -> str:
    """A configuration file's text; Damaged when it is not UTF-8."""
    try:
        return content.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError:
        raise Damaged(path, "not UTF-8", _HINT) from None


def tree_of(path: Path, text: str) -> dict[str, Any]:
    """What a configuration file says; Damaged when it is no mapping."""
    plain = _plain(text)
    if plain is not None:
        return plain
    from ralf.document import guarded_yaml

    try:
        return guarded_yaml.load(text)
    except guarded_yaml.BadYaml as error:
        what = f"line {error.line}: {error.what}" if error.line else error.what
        raise Damaged(path, what, _HINT) from None


_KEY_AND_WORD = regex(r"([a-z_]{1,64}): +([A-Za-z0-9][A-Za-z0-9_.%-]*) *(?: #.*)?")


def _plain(text: str) -> dict[str, Any] | None:
    """What a file of comments and lines such as `key: word` says, which is nearly every one: hooks read it at each look
    and have no time to load YAML. None for any other.
    """
    found: dict[str, Any] = {}
    if not text.isascii() or not text.replace("\n", "").isprintable():
        return None
    for line in text.split("\n"):
        if not line or line.startswith("#"):
            continue
        match = _KEY_AND_WORD.fullmatch(line)
        if match is None or match[1] in found:
            return None
        found[match[1]] = meaning(match[2])
    return found


def made_of(cls: type[T], path: Path, text: str, choices: Mapping[str, Sequence[str]]) -> T:
    """Return what the text of a configuration file says as a dataclass, whose fields are the known keys. UsageError for
    any other key, with the one that it resembles, and for a value that makes no sense; Damaged for no mapping.

    choices  the words that a key may have, where only some make sense
    """
    kinds = {field.name: str(field.type) for field in fields(cls)}  # type: ignore[arg-type]
    values = {}
    for key, value in tree_of(path, text).items():
        if key not in kinds:
            check_known(path, key, kinds, line=_line_of(key, text))
        values[key] = checked(path, key, value, kinds[key], choices)
    try:
        return cls(**values)
    except UsageError as error:
        raise UsageError(path, str(error), error.hint) from None


def _line_of(key: str, text: str) -> int:
    """The number of the line that sets a key, 0 where none does in the plainest way."""
    lines = enumerate(text.split("\n"), start=1)
    return next((number for number, line in lines if re.match(rf"""["']?{re.escape(str(key))}["']?\s*:""", line)), 0)


def check_known(path: Path, key: str, known: Collection[str], *, line: int = 0) -> None:
    """UsageError for a key that is none of `known`, with the one that it resembles; `line`: where it stands."""
    if key not in known:
        import difflib  # few mistype one

        close = difflib.get_close_matches(key, known, n=1)
        hint = f"write {close[0]!r}" if close else f"known keys: {', '.join(known)}"
        if line and not close:
            hint = f"delete line {line} of {path}; {hint}"
        raise UsageError(
            path, f"line {line}: unknown key {quoted(key)}" if line else f"unknown key {quoted(key)}", hint
        )


def checked(path: Path, key: str, value: Any, kind: str, choices: Mapping[str, Sequence[str]]) -> Any:
    """A value of this kind (`int`, `bool`, `str` or a tuple of them); UsageError for one that makes no sense."""
    got = "something else" if key in SECRET else quoted(value)
    if kind.startswith("tuple"):
        if not isinstance(value, list) or not all(isinstance(item, str | int | float) and item != "" for item in value):
            raise UsageError(path, f"{key}: expected a list of texts, got {got}", f'{key}: ["one", "two"]')
        return tuple(map(str, value))
    if kind == "int":
        least, most = 0 if key in _FROM_ZERO else 1, _AT_MOST.get(key, _PERCENT)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            what = f"{key}: expected a whole number from {least} to {most:,}, got {quoted(value)}"
            raise UsageError(path, what, f"write a number in these bounds, or take {key} out for its default")
        return value
    if kind == "bool":
        if not isinstance(value, bool):
            raise UsageError(path, f"{key}: expected true or false, got {got}", f"{key}: true")
        return value
    if key in _QUOTED and not isinstance(value, str | None):  # YAML has made a number of it, which is another word
        raise UsageError(path, f"{key}: write it in quotes", f'{key}: "…"')
    text = "" if value is None else str(value)
    if key in choices and text not in choices[key]:
        words = [word for word in choices[key] if word]
        local = "a model is named in config.local.yaml: docs/config.md"
        hint = local if words == ["extractive"] else f"write {key}: {words[0]}"
        raise UsageError(path, f"{key}: expected {' or '.join(words)}, got {quoted(text)}", hint)
    return text


def _comment_in(line: str) -> str:
    """The comment behind a value, with the space before it; "" for none, and where a quote follows a number sign."""
    rest = line[max(line.rfind('"'), line.rfind("'")) + 1 :]
    found = _COMMENT.search(rest)
    return rest[found.start() :] if found is not None else ""


_COMMENT = regex(r"(?<![ \t])[ \t]++#")


def with_setting(path: Path, text: str, key: str, value: Any) -> str:
    """A configuration's text with one setting changed, `value` None: taken out. All else stays as it is, and so does a
    comment behind the value. UsageError where no change of its lines says that.
    """
    before = tree_of(path, text)
    wanted: dict[str, Any] = {name: one for name, one in before.items() if name != key}
    if value is not None:
        wanted[key] = list(value) if isinstance(value, tuple) else value
    if wanted == before:
        return text
    lines = text.splitlines(keepends=True)
    start = next((n for n, line in enumerate(lines) if re.match(rf"{re.escape(key)}[ \t]*:", line)), None)
    end = len(lines) if start is None else start + 1
    while start is not None and end < len(lines) and re.match(r"[ \t]+\S|- ", lines[end]):
        end += 1  # of a value that takes several lines
    comment = _comment_in(lines[start].rstrip("\n")) if start is not None else ""
    if lines and start is None and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    made = "" if value is None else f"{_line(path, key, wanted[key])}{comment}\n"
    changed = "".join([*lines[: end if start is None else start], made, *lines[end:]])
    try:
        fits = tree_of(path, changed) == wanted
    except Damaged:
        fits = False
    if not fits:
        raise UsageError(path, f"{key} cannot be changed by a line", f"write into the file: {made.strip() or key}")
    return changed


def _line(path: Path, key: str, value: Any) -> str:
    """A setting as it is written: without quotes where that says the same."""
    import json  # few change one

    plain = f"{key}: {value}"
    if isinstance(value, str | int) and not isinstance(value, bool) and "\n" not in plain and "#" not in plain:
        try:
            if tree_of(path, plain) == {key: value}:
                return plain
        except (UsageError, Damaged):
            pass
    return f"{key}: {json.dumps(value, ensure_ascii=False)}"


# ---- how the command is typed: as `ralf`, or as a loop's script ----

NAME = "ralf"

SCRIPT = Path("hooks", "context-checkpoint.sh")
"""The loop's script, below a project's folder: it calls this command whatever else is called so."""

_MOST_OF_A_SCRIPT = 64 << 10  # bytes of a script

_COMMANDS = (
    "checkpoint|completion|config|context|decide|doctor|edit|export|forget|gc|handover|hook|import|init|list|log|loop"
    "|mcp|memory|plan|route|run|schema|search|send|show|status|task|trust|undo|web"
    "|claim|diff|done|health|merge-driver|message|migrate|nudge|off|on|orchestrator|refresh|serialize|signal|why"
)
"""The first words of commands, and of those that earlier versions had: prompts of their sessions name them."""

_TYPED = rf"(?<![\w./-]){NAME} (?=(?:{_COMMANDS})\b)"

_VERBS = "checkpoint|decide|diff|drop|edit|forget|list|log|merge|rename|revert|search|show|trust|use|verify|watch|why"

_TASK_VERBS = "add|claim|done|edit|fail|list|progress|release|retry|show|split|trust"

_OWN = (
    rf"\s*+(?:--load-context(?:[ =][ ]?\S{{1,100}}+)?|/{NAME}:\w[^\n]*+"
    rf"|(?:[`$!]\s?)?{NAME}[ ]"
    r"(?:(?:claim|doctor|gc|health|init|loop|mcp|off|on|orchestrator|plan|refresh|send|serialize|status|trust|web)"
    r"(?:[ ]-[^\n]*+)?"
    rf"|(?:context|route)[ ](?:{_VERBS})\b[^\n]*+|--?\w[^\n]*+"
    rf"|task(?:[ ](?:{_TASK_VERBS})(?:[ ](?:[\"'-]|[A-Z]+-)[^\n]*+)?)?"
    r"|loop[ ](?:attach|handover|status|stop)(?:[ ]-[^\n]*+)?"
    r"|(?:checkpoint|decide|diff|done|edit|export|forget|list|log|route|search|send|show|undo|why)"
    r"(?:[ ](?:[\"'-]|[A-Z]+-)[^\n]*+)?"
    r"|(?:decide|send)[ ]\S++[ ][\"'][^\n]*+"
    r"|handover[ ]\S++[ ]<<[^\n]*+|nudge[ ][\"'][^\n]*+|(?:import|migrate)[ ][\w./~-]++(?:[ ]-[^\n]*+)?)`?)\s*+\Z"
)


def command_of(folder: Path, pinned: Callable[[str], str]) -> str:
    """What is typed in place of `ralf` in the project whose `.autonomous/context` this is, or where the loop's script
    that runs us says so.

    pinned  the sha256 of the script that this user's ralf has installed at a real path, "" for none

    No other script is ever named, whatever lies in its place and whoever says so: an agent would run it.
    """
    for script in (_script_in(environment.command()), folder / SCRIPT):
        expected = pinned(os.path.realpath(script)) if script is not None else ""
        if script is not None and expected and digest_of(script) == expected and os.access(script, os.X_OK):
            import shlex

            return f"{shlex.quote(str(script))} {NAME}"
    return NAME


def _script_in(said: str) -> Path | None:
    """The script that a command names, None for any other command."""
    if not said:
        return None
    import shlex  # few projects have a script

    try:
        words = shlex.split(said)
    except ValueError:
        return None
    return Path(words[0]) if len(words) == 2 and words[1] == NAME and words[0].startswith("/") else None


def digest_of(script: Path) -> str:
    """The sha256 of a script that is a regular file of this user, which nobody else may write; "" for anything else."""
    try:
        found = script.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & stat.S_IWOTH:
            return ""
        return digests.sha256(content_of(script, most=_MOST_OF_A_SCRIPT)).hexdigest()
    except OSError:
        return ""


def is_all(text: str) -> bool:
    """Whether a text is a command of ours, or of a client to us, and nothing more: no request."""
    return re.match(_OWN, text) is not None


def typed(text: str, command: str) -> str:
    """A text of ours with the commands in it as they are typed."""
    return text if command == NAME else re.sub(_TYPED, lambda found: f"{command} ", text)
