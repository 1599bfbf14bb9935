"""Secrets in command lines: `curl -u user:…`, `mysql -p…`, `echo … | docker login --password-stdin`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ralf.secrets.secretformats import Hit
from ralf.secrets.secretnames import WRAP
from ralf.secrets.secretvalues import is_placeholder

_PASSWORD = r"([^\s'\"`\\|;&<>]{2,256})"  # noqa: S105
_USER = rf"[ =]?\s*['\"]?[^\s:'\"]{{1,100}}:{_PASSWORD}"
_MOST_BETWEEN = 150  # characters between a program and its option, on one line and in one command
_SEPARATORS = re.compile(r"[\n|;]")


class _Option(NamedTuple):
    """An option of some programs whose value is a secret; the option is looked for first, for programs are many."""

    programs: re.Pattern[str]
    option: re.Pattern[str]

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Where it stands, each with the secret as its first group."""
        ends: list[int] = []
        for found in self.option.finditer(text):
            ends = ends or [program.end() for program in self.programs.finditer(text)] or [len(text)]
            start = found.start()
            end = ends[bisect_right(ends, start) - 1]
            if end <= start <= end + _MOST_BETWEEN and not _SEPARATORS.search(text, end, start):
                yield found


def _option(programs: str, option: str) -> _Option:
    return _Option(re.compile(rf"{programs}\b"), re.compile(rf"\s{option}"))


_COMMANDS: tuple[tuple[str, tuple[str | _Option, ...]], ...] = (
    ("curl", (_option("curl", rf"(?:-u|--user|-U|--proxy-user){_USER}"), rf"{WRAP}\s*(?:-u|--user){_USER}")),
    (
        " -p",
        (
            _option(r"\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump|mysqlimport)", rf"-p['\"]?{_PASSWORD}"),
            _option(
                r"\b(?:docker|podman|helm|buildah|skopeo|nerdctl|oc|az|cf)\b[^\n|;]{0,60}\blogin",
                rf"-p[ =]?['\"]?{_PASSWORD}",
            ),
            _option(r"\bmongo(?:sh|dump|restore|export|import)?", rf"-p\s*['\"]?{_PASSWORD}"),
            _option(r"\b7za?", rf"-p['\"]?{_PASSWORD}"),
        ),
    ),
    ("sshpass", (rf"sshpass\s+-p\s*['\"]?{_PASSWORD}",)),
    ("pass:", (rf"\s-pass(?:in|out)?\s+['\"]?pass:{_PASSWORD}",)),
    ("storepass", (rf"-(?:src|dest)?storepass\s+['\"]?{_PASSWORD}",)),
    ("-keypass", (rf"-keypass\s+['\"]?{_PASSWORD}",)),
    ("htpasswd", (rf"htpasswd\s+-[a-zA-Z]*b[a-zA-Z]*\s+\S{{1,200}}\s+\S{{1,100}}\s+['\"]?{_PASSWORD}",)),
    (
        "password-stdin",
        (rf"(?:echo|printf)\s+(?:-n\s+)?['\"]?{_PASSWORD}['\"]?\s*\|[^\n|]{{0,200}}password-stdin",),
    ),
    ("chpasswd", (rf"echo\s+(?:-e\s+)?['\"]?[\w.-]{{1,64}}:{_PASSWORD}['\"]?\s*\|\s*(?:sudo\s+)?chpasswd",)),
    ("sudo -S", (rf"echo\s+['\"]?{_PASSWORD}['\"]?\s*\|\s*sudo\s+-S",)),
    ("redis-cli", (_option("redis-cli", rf"-a\s*['\"]?{_PASSWORD}"),)),
    ("ldap", (_option(r"\bldap(?:search|modify|add|delete|whoami|passwd)", rf"-w\s*['\"]?{_PASSWORD}"),)),
    ("%", (rf"\s-U\s+['\"]?[\w.\\/-]{{1,64}}%{_PASSWORD}",)),
    ("zip ", (_option(r"\b(?:un)?zip", rf"-P\s*['\"]?{_PASSWORD}"),)),
    ("vault login", (rf"vault\s+login\s+(?:token=)?['\"]?{_PASSWORD}",)),
    ("--from-literal", (rf"--from-literal[ =]['\"]?[\w.-]{{1,80}}=['\"]?{_PASSWORD}",)),
    (
        "dentified",
        (r"(?:[Ii]dentified|IDENTIFIED)\s+(?:with\s+\w{1,40}\s+)?by\s+(?:password\s+)?['\"]([^'\"\n]{2,256})['\"]",),
    ),
    ("IDENTIFIED", (r"IDENTIFIED\s+(?:WITH\s+\w{1,40}\s+)?BY\s+(?:PASSWORD\s+)?['\"]([^'\"\n]{2,256})['\"]",)),
)
Rules = Sequence[tuple[str, Sequence[re.Pattern[str] | _Option]]]
"""Rules, each with the literal without which it finds nothing."""

_RULES: dict[str, list[tuple[str, list[re.Pattern[str] | _Option]]]] = {}  # by what many literals and few texts have
for _literal, _rules in _COMMANDS:
    _compiled = [re.compile(rule) if isinstance(rule, str) else rule for rule in _rules]
    _RULES.setdefault("pass" if "pass" in _literal else "", []).append((_literal, _compiled))


def likely(text: str) -> Rules:
    """The rules that may find something in a text, or in a part of it."""
    return [rule for common, its in _RULES.items() if common in text for rule in its if rule[0] in text]


def find(text: str, rules: Rules | None = None) -> Iterator[Hit]:
    """The secrets of a text that stand in command lines, in no order.

    rules  those that are likely for a text of which this one is a part, where it was looked at
    """
    for literal, patterns in likely(text) if rules is None else rules:
        if rules is None or literal in text:
            for pattern in patterns:
                for found in pattern.finditer(text):
                    if not is_placeholder(found[1]):
                        yield Hit(*found.span(1), "password")
