"""The sentences, commands and names by which a segment's items are told: a pattern is asked of one sentence or line."""

from __future__ import annotations

from pathlib import PurePosixPath

from ralf.text.patterns import regex

_TIME = (
    r"(?:the )?(?:noon|midnight|tonight|tomorrow|today|EOD|end of|next \w+|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|\d{1,2}(?::\d\d)?\s?(?:am|pm)\b|\d{1,2}:\d\d|\d{4}-\d\d-\d\d|\d+ (?:minutes|hours|days|weeks)"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6} \d)"
)

_STATUS = (
    r"(?:pending|in[ _-]progress|blocked|done|completed?|failed|cancelled|(?:in )?review|ready|open|closed|merged)"
)

COMMITS_TO = regex(
    r"(?i)\b(?:promised?|pledged?|committed (?:to|ourselves|myself)|agreed (?:to|with)|(?:I|we) owe)\b"
    r"|\b(?:I|we)(?:['\u2019]ll| will| shall| am going to| are going to)\b"
    rf".{{0,160}}?\b(?:by|before|until|on|at|within|no later than) {_TIME}"
)
"""A promise to somebody, or one that names its time."""

MOVES_ON = regex(
    r"(?i)\b(?:moved?|changed?|went|goes|set|marked|switched) .{0,80}?"
    rf"\b(?:from [\w`'\"-]+ )?(?:to|as) [`'\"]?{_STATUS}\b|\bis now [`'\"]?{_STATUS}\b"
)
"""A task that changed its status."""

DELEGATES = regex(
    r"(?i)\b(?:delegat(?:ed?|ing)|assigned|hand(?:ed|ing)? (?:\w+ )?(?:over|off)|passed (?:this|it) on)\b"
    r".{0,120}?\bto\b"
)
"""Work that was given to another."""

BLOCKS = regex(r"(?i)\b(?:blocked (?:by|on|until)|blocker\b|cannot (?:continue|proceed|go on)|waiting (?:for|on) \w)")
"""What holds the work up."""

SETS = regex(
    r"(?i)\b(?:set|raised|lowered|changed|increased|reduced|bumped|switched) .{0,80}?[`\w.-]+ (?:from \S+ )?to \S"
)
"""A value that was set; of a setting, where the sentence names one (`SETTING`)."""

SETTING = regex(
    r"(?i:\b(?:config\w*|setting|timeout|limit|flag|option|variable|env\w*|threshold|port|version|level|size)\b)"
    r"|[A-Z_]{4,}|`[^`]+`"
)

CONFIGURES = regex(
    r"(?m)(?:^|[;&|][ \t]*)(?:(?:git|npm|pnpm|yarn|pip|poetry|gcloud|aws|heroku|gh|brew|conda) config\b"
    r"|kubectl (?:set|patch|apply)\b|sysctl -w\b|defaults write\b|helm upgrade\b|export [A-Z_]{2,}="
    r"|systemctl (?:enable|disable|set-property)\b)[^\n]{0,200}"
)
"""A command that sets something."""

TASK_COMMAND = regex(r"(?m)^(?:\S*/)?ralf task (?:claim|done|fail|release|split|retry)\b[^\n]{0,160}")

_QUOTED = r"(?:\"(?P<double>[^\"\n]{1,2000})\"|'(?P<single>[^'\n]{1,2000})')"

DECIDES = regex(rf"(?m)^(?:\S*/)?ralf (?:context )?decide (?:[\w.-]{{1,64}} )?{_QUOTED}(?P<rest>[^\n;&|]{{0,2000}})")
"""A command that records a decision."""

BECAUSE = regex(rf"--because[ =]{_QUOTED}")

TRIED = regex(r"(?i)^\W*(?:we |I )?tr(?:ied|ying)\b")

DELEGATING = frozenset(("task", "agent", "spawn_agent", "delegate", "delegate_task", "handoff", "send_message"))
"""Tools that give work to another."""

_CONFIG_NAMES = frozenset(
    ("dockerfile", "makefile", "procfile", "jenkinsfile", ".env", ".gitignore", ".npmrc", ".editorconfig")
)

_CONFIG_ENDS = (".toml", ".yaml", ".yml", ".json", ".ini", ".cfg", ".conf", ".properties", ".env", ".tf")


def is_config(path: str) -> bool:
    """Whether a file holds settings, by its name."""
    pure = PurePosixPath(path.casefold())
    return pure.name in _CONFIG_NAMES or pure.name.endswith(_CONFIG_ENDS) or ".github" in pure.parts


def is_setting(text: str) -> bool:
    """Whether a sentence says that a setting was changed."""
    return SETS.search(text) is not None and SETTING.search(text) is not None
