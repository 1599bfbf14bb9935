"""Secrets that their context shows: command lines, Kubernetes' manifests, tables, and texts that announce them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from itertools import pairwise

from ralf.redact.engine import Hit, Place, Text, any_of, by_word, pattern, rules_for
from ralf.redact.values import is_compound, is_foreign, is_mixed, is_placeholder, is_random, is_unspoken
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

# ---- command lines and calls ----

# A rule names what takes a secret (the option of a program, a pipe, a call) and says whether any value there is one, or
# only one that looks random. A text is searched for the words of the rules first: rules are many, and texts have few.


MARGIN = r"(?:[+-](?=\s)|[ \t]*+[0-9]{1,6}[→\t|:])?+"
"""Matches what a diff or a listing puts before a line, as a regular expression."""

WRAP = rf"(?:\\\r?\n{MARGIN}|\\+n{MARGIN})"
"""Matches the end of a command's line that goes on, as a regular expression."""

_PLAIN = r"[^\s'\"`\\|;&<>]{2,256}"

_VALUE = rf"(?:'([^'\n]{{2,256}})'|\"([^\"\n]{{2,256}})\"|['\"]?({_PLAIN}))"

_QUOTED = r"(?:'([^'\n]{2,256})'|\"([^\"\n]{2,256})\"|`([^`\n]{2,256})`)"

_USER = r"[^\s:'\"]{1,100}:"

_WITH_USER = rf"[ =]?\s*(?:'{_USER}([^'\n]{{2,256}})'|\"{_USER}([^\"\n]{{2,256}})\"|['\"]?{_USER}({_PLAIN}))"

_STRING = r"['\"][^'\"\n]{1,200}['\"]"

_STRING_OR_WORD = rf"(?:{_STRING}|\S{{1,64}})"

_MOST_BETWEEN = 150  # characters between a program and its option, on one line and in one command

_SEPARATORS = regex(r"[\n|;]")


@dataclass(frozen=True, eq=False)
class _Rule:
    """Where a secret stands in a command.

    words  separated by "|": one of them, in lower case, is in a text where it stands
    finds  finds it, as a regular expression: the group that took part
    after  matches what precedes it in the same command, "" for anything; searched second, for it has many words
    sure   any value there is a secret, even one that does not look random
    """

    words: str
    finds: str
    after: str = ""
    sure: bool = True

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Where it stands."""
        ends: list[int] = []
        for found in pattern(self.finds).finditer(text):
            if self.after:
                ends = ends or [program.end() for program in pattern(self.after).finditer(text)] or [len(text)]
                start = found.start()
                end = ends[bisect_right(ends, start) - 1]
                if not end <= start <= end + _MOST_BETWEEN or _SEPARATORS.search(text, end, start):
                    continue
            yield found


def _option(programs: str, option: str, *, value: str = rf"[ =]?{_VALUE}", words: str = "", sure: bool = True) -> _Rule:
    """An option of some programs."""
    return _Rule(words or programs, rf"\s(?:{option}){value}", after=rf"\b(?:{programs})\b", sure=sure)


_TAKES = (
    r"(?:passw|encrypt_string|--stdin|\bvault\b|passphrase|sudo\s+-\w*S|kinit|cryptsetup|\blogin\b|\bsu\b|gpg\d?\b|"
    r"ssh-add|secrets?\b)"
)

_ECHO = r"(?:echo|printf)\s+(?:-[a-z]+\s+)?"

_CALLS = (
    "getConnection|connect|login|log_in|signIn|sign_in|authenticate|basicAuth|basic_auth|BasicAuth|SetBasicAuth|HTTPBasicAuth|"
    "PDO|mysqli|mysqli_connect|createConnection|NetworkCredential|UsernamePasswordCredentials|setCredentials|create_user|create_superuser|createUser|add_user"
)

_HASHES = (
    "hashSync|hash|hashpw|compare|compareSync|checkpw|generate_password_hash|make_password|check_password|set_password|"
    "setPassword|password_hash|password_verify|login_as|Hash::make|encodePassword|encryptPassword"
)


def _words_of(calls: str) -> str:
    """The words that stand where one of some functions is called."""
    return "|".join(dict.fromkeys(f"{call.lower()}(" for call in calls.split("|")))


_COMMAND_RULES: tuple[_Rule, ...] = (
    # programs and their options
    _option("curl|wget", "-u|--user|-U|--proxy-user", value=_WITH_USER),
    _Rule("curl", rf"{WRAP}\s*(?:-u|--user){_WITH_USER}"),
    _option("curl", "-b|--cookie", value=r"[ =]?['\"]?[\w.%-]{1,80}=([^\n\"'`\\]{4,4096})"),
    _option("http|https|xh|xhs", "-a|--auth", value=_WITH_USER, words="http |https |xh |xhs "),
    _option("mysql|mysqldump|mysqladmin|mariadb|mariadb-dump|mysqlimport", "-p", value=_VALUE, words="mysql|mariadb"),
    _option("mongo(?:sh|dump|restore|export|import|stat|top|files)?", "-p", words="mongo"),
    _Rule(
        "login",
        rf"\s-p[ =]?{_VALUE}",
        after=r"\b(?:docker|podman|helm|buildah|skopeo|nerdctl|crane|oras|oc|az|cf)\b[^\n|;]{0,60}\blogin\b",
    ),
    _option("7za?|7zz|rar|unrar", "-p|-hp", value=_VALUE, words="7z |7za |7zz |rar "),
    _option("(?:un)?zip|zipcloak", "-P", words="zip "),
    _option("sshpass", "-p"),
    _option("redis-cli|valkey-cli", "-a|--pass|AUTH(?: default)?|auth(?: default)?"),
    _option("ldap(?:search|modify|add|delete|whoami|passwd|compare|modrdn)", "-w", words="ldap"),
    _option("sqlcmd|bcp|osql|isql|tsql|ipmitool|ssh-keygen|racadm", "-P"),
    _option("ssh-keygen", "-N"),
    _option(
        "cqlsh|cypher-shell|twine|ncftp(?:put|get|ls)?|doveadm|beeline|rabbitmqadmin|arangosh|hdbsql|unlock-keychain",
        "-p",
        words="cqlsh|cypher-shell|twine|ncftp|doveadm|beeline|rabbitmqadmin|arangosh|hdbsql|unlock-keychain",
        sure=False,
    ),
    _option("security", "-w|-p", value=rf"[ ]{_VALUE}", sure=False),
    _option("openssl", "-k|-pass", value=rf"\s+{_VALUE}", sure=False),
    _option("snmp(?:walk|get|set|bulkwalk|trap|getnext|table|inform)", "-A|-X|-c", words="snmp", sure=False),
    _option("lftp|sftp|ftp", "-u", value=r"[ ]?['\"]?[^\s,'\"]{1,64},([^\s,'\"`\\|;&<>]{2,256})", words="ftp "),
    _option(
        "(?:x|w|sdl-)?freerdp3?|mstsc|rdesktop",
        "/p:|-p ?|--p(?:assword)?:",
        value=_VALUE,
        words="freerdp|mstsc|rdesktop",
    ),
    _option("signtool|schtasks|psexec|runas|certutil|netsh|wmic", "/r?p|-p", value=rf"[ :]{_VALUE}", sure=False),
    _option("vercel|influx|doctl|consul|nomad|netlify", "-t|-token|--auth", sure=False),
    _option(
        "openai|dotnet|nuget|gem|stripe|rails", "-k|--key|-apikey", words="openai|nuget|gem push|stripe", sure=False
    ),
    _option(
        "supabase|mosquitto_(?:pub|sub|rr)|x11vnc|xcrun|bcp",
        "-p|-P|-passwd",
        words="supabase|mosquitto|x11vnc|xcrun",
        sure=False,
    ),
    _Rule(
        " -pw | -gp| -ap | -upw| -opw| -hmac| -passwd|input_pw|_pw ",
        rf"\s(?:-(?:pw|gp|ap|upw|opw|hmac|passwd)|(?:input|owner|user)_pw)[ =]{_VALUE}",
        sure=False,
    ),
    _Rule(
        "secret|keyvault|ssm |kv put|parameter",
        rf"\s(?:--?(?:b|value|body|secret-string|data|text)[ =]?|value=){_VALUE}",
        after=r"\b(?:secrets?|keyvault|ssm|kv|put-parameter|secretsmanager|variable)\b",
        sure=False,
    ),
    # what a verb takes
    _Rule(
        "unlock|unseal|obscure|setapikey|set-user-password|reset-admin-password|user add|user:password|service install|"
        "luksopen|set-default-token|acl set-agent-token|kv put",
        r"\b(?:unlock|unseal|obscure|setapikey|set-user-password|reset-admin-password|user add|user:password|"
        r"service install|set-agent-token default|kv put)"
        rf"[ ](?:[\w@./][\w@./-]{{0,60}}[ ]){{0,2}}(?!-){_VALUE}",
        sure=False,
    ),
    _Rule(
        "snyk auth|turso auth|hf auth|netlify auth|wandb login|bw login|auth token",
        rf"\b[a-z]{{2,12}}\s+(?:auth(?:\s+token)?|login)\s+(?:\S{{1,60}}\s+)?{_VALUE}",
        sure=False,
    ),
    _Rule("rclone", rf"\brclone\s+config\b[^\n|;]{{0,150}}\s(?:pass|password|token|secret_access_key)[ =]{_VALUE}"),
    _Rule("isql", rf"\bisql\s+(?:-\w+\s+){{0,3}}[\w.-]{{1,40}}\s+[\w.-]{{1,40}}\s+{_VALUE}", sure=False),
    _Rule(":pserver:|:ext:", r":(?:pserver|ext):[\w.-]{1,40}:([^\s@:'\"]{2,128})@"),
    _Rule(
        "<(echo|<(printf",
        r"<\((?:echo|printf)\s(?:-\w{1,3}\s)?[\"'](?:[^\"'\n\\]{1,64}\\n)?([^\"'\n\\]{2,256})[\"'\\]",
        sure=False,
    ),
    _Rule("task.setvariable", r"task\.setvariable\s+variable=[^\]\n]{1,100}\]([^\s'\"]{4,512})", sure=False),
    _Rule(
        "github-oauth|gitlab-token|gitlab-oauth|bitbucket-oauth",
        r"(?:github|gitlab|bitbucket)-(?:oauth|token)[\"'.\\:\s{]{1,12}[\w.-]{1,80}\\*[\"']?[:\s]{1,3}\\*[\"']?([\w.+/=-]{8,256})",
        sure=False,
    ),
    _Rule(
        ":5432:|:*:*:|pgpass",
        r"(?m)^[\w.*-]{1,100}:(?:[0-9]{2,5}|\*):[\w*.-]{1,60}:[\w*.-]{1,60}:(\S{4,200})$",
        sure=False,
    ),
    _Rule(
        "login:|credentials:|account:|user:|username:|creds:",
        rf"(?i:\b(?:login|credentials|creds|account|user(?:name)?)):\s{{0,4}}[\w.@-]{{1,60}}(?:\s/\s|\s?:\s?|,\s){_VALUE}",
        sure=False,
    ),
    _Rule("pass:", rf"\s-pass(?:word|in|out)?\s+['\"]?pass:['\"]?({_PLAIN})"),
    _Rule("-storepass|-keypass|storepass", rf"-(?:(?:src|dest)?store|(?:src|dest)?key)pass\s+{_VALUE}"),
    _Rule(" -u ", rf"\s-U\s+['\"]?[\w.\\/-]{{1,64}}%({_PLAIN})"),
    _Rule("--from-literal", rf"--from-literal[ =]['\"]?[\w.-]{{1,80}}=['\"]?({_PLAIN})"),
    _Rule("--plaintext|--arg ", rf"--(?:plaintext|arg\s+\w{{1,30}})[ =]{_VALUE}", sure=False),
    _Rule("--key|--apikey|--api-key", rf"\s--(?:api-?)?key[ =]{_VALUE}", sure=False),
    _Rule(
        " -p| -w| /p",
        rf"\s(?:-[pPwW][ =]?|/p(?:ass(?:word)?)?:){_VALUE}",
        after=r"\s(?:-u|-U|-l|-D|--user(?:name)?|--login|-user(?:name)?|/u(?:ser)?:)[ =]?['\"]?[\w.@\\/-]{1,80}",
        sure=False,
    ),
    _Rule(
        "--user|creds|--auth|-u ",
        rf"\s--?(?:u|user|userpass|auth|(?:[a-z]{{1,6}}-)?creds|credentials|login|proxy-user){_WITH_USER}",
        sure=False,
    ),
    # what stands at a place of its own
    _Rule(
        "htpasswd",
        rf"htpasswd\s+(?:-[a-zA-Z0-9]+\s+){{0,4}}-[a-zA-Z]*b[a-zA-Z]*\s+(?:-[a-zA-Z0-9]+\s+){{0,4}}(?:[^\s-]\S{{0,200}}\s+)?[^\s-]\S{{0,100}}\s+{_VALUE}",
        sure=False,
    ),
    _Rule(
        "mkpasswd|openssl passwd|hash-password",
        r"(?:mkpasswd|openssl\s+passwd|hash-password)\s+"
        rf"(?:-{{1,2}}[\w-]{{1,20}}(?:[ =](?!-)[\w-]{{1,20}}(?=\s))?\s+){{0,4}}{_VALUE}",
        sure=False,
    ),
    _Rule(
        "add_user|change_password|authenticate_user",
        rf"(?:add_user|change_password|authenticate_user)\s+\S{{1,80}}\s+{_VALUE}",
        sure=False,
    ),
    _Rule(
        "alias set|config host add",
        rf"(?:alias\s+set|config\s+host\s+add)\s+\S{{1,80}}\s+https?://\S{{1,200}}\s+\S{{1,128}}\s+{_VALUE}",
    ),
    _Rule("http-basic.|pypi-token.", rf"(?:http-basic\.\S{{1,80}}\s+\S{{1,80}}|pypi-token\.\S{{1,80}})\s+{_VALUE}"),
    _Rule(
        "sqlplus|impdp|expdp|sqlldr|rman|sqlcl",
        r"\b(?:sqlplus|impdp|expdp|sqlldr|rman|sqlcl)\b[^\n|;]{0,60}?\s['\"]?\w{1,60}/([^\s@'\"/]{2,128})",
    ),
    _Rule("net use", r"\bnet\s+use\b[^\n|;]{0,100}?\s(?![/*])([^\s\\/:'\"]{4,128})\s+/user:", sure=False),
    _Rule("/user:", rf"/user:\S{{1,80}}\s+(?!/)({_PLAIN})", sure=False),
    _Rule(
        " login",
        rf"\b(?:vault|cargo|npm|fly|flyctl|doppler|railway|hf|huggingface-cli|wandb|snyk|sentry-cli|gh|glab|supabase|netlify|vercel|turso|ngrok)\s+(?:auth\s+)?login\s+(?:-\S{{1,30}}\s+)?(?:token=)?{_VALUE}",
        sure=False,
    ),
    _Rule("net user", rf"\bnet\s+user\s+\S{{1,80}}\s+(?!/){_VALUE}", sure=False),
    _Rule("wpa_passphrase", rf"wpa_passphrase\s+{_STRING_OR_WORD}\s+{_VALUE}"),
    _Rule("encrypt_string", rf"encrypt_string\s+(?:--[\w-]{{1,30}}[ =]\S{{1,60}}\s+){{0,3}}{_QUOTED}"),
    _Rule("add-authtoken|authtoken", rf"authtoken\s+{_VALUE}", sure=False),
    _Rule("--encrypt", rf"--encrypt\s+{_VALUE}\s", sure=False),
    _Rule("--encrypt", rf"--encrypt\s+\S{{2,256}}\s+{_VALUE}\s", sure=False),
    _Rule("community", rf"\bcommunity\s+{_VALUE}", sure=False),
    _Rule(
        "|".join(f"{name} {digit}" for name in ("secret", "password") for digit in "0123456789"),
        rf"\b(?:secret|password)\s+[0-9]{{1,2}}\s+({_PLAIN})",
        sure=False,
    ),
    # pipes and here-strings
    _Rule(
        "echo|printf",
        rf"{_ECHO}(?:'(?:[\w.-]{{1,64}}:)?([^'\n|\\]{{2,256}})(?:\\n[^'\n]{{0,260}})?'|\"(?:[\w.-]{{1,64}}:)?([^\"\n|\\]{{2,256}})(?:\\n[^\"\n]{{0,260}})?\"|(?:[\w.-]{{1,64}}:)?({_PLAIN}))\s*\|\s*(?=[^\n|]{{0,200}}?{_TAKES})",
    ),
    _Rule(
        "echo|printf",
        rf"{_ECHO}['\"]?{_VALUE}['\"]?\s*\|\s*(?=[^\n|]{{0,200}}?(?:\benv\b|_(?:PASS|PASSWD|PASSWORD|PWD|PW|KEY|TOKEN|SECRET)\b))",
        sure=False,
    ),
    _Rule("passw", rf"echo\s+({_PLAIN})(?=;\s*echo\s[^\n|]{{1,260}}\|[^\n|]{{0,80}}passw|\)\s*\|[^\n|]{{0,80}}passw)"),
    _Rule(
        "passw", rf"{_ECHO}['\"][^'\"\n\\]{{2,256}}\\n([^'\"\n\\]{{2,256}})(?:\\n)?['\"]\s*\|\s*[^\n|]{{0,200}}passw"
    ),
    _Rule(
        "<<<",
        rf"{_TAKES}[^\n|;]{{0,120}}?<<<\s*(?:'(?:[\w.-]{{1,64}}:)?([^'\n]{{2,256}})'|\"(?:[\w.-]{{1,64}}:)?([^\"\n]{{2,256}})\"|({_PLAIN}))",
    ),
    _Rule("send |send_", r"\bsend(?:_slow|_user)?\s+(?:--\s+)?[\"'{]([^\"'\n\\}]{2,256})\\+[rn]", sure=False),
    # SQL
    _Rule("identified", rf"IDENTIFIED\s+(?:WITH\s+\w{{1,40}}\s+)?BY\s+(?:PASSWORD\s+)?{_QUOTED}"),
    _Rule("identified", rf"[Ii]dentified\s+(?:with\s+\w{{1,40}}\s+)?by\s+(?:password\s+)?{_QUOTED}", sure=False),
    # calls
    _Rule(
        "auth=|auth =|auth:",
        rf"\b(?:auth|basic_auth|basicAuth|http_auth)\s*[=:]\s*[(\[]\s*{_STRING}\s*,\s*[rb]?{_QUOTED}\s*[)\]]",
        sure=False,
    ),
    _Rule(
        _words_of(_CALLS),
        rf"(?:{any_of(_CALLS.split('|'))})\(\s*(?:[^()\n'\"]{{0,60}}(?:{_STRING})?,\s*)?{_STRING}\s*,\s*[rb]?{_QUOTED}\s*[,)]",
        sure=False,
    ),
    _Rule(_words_of(_HASHES), rf"(?:{any_of(_HASHES.split('|'))})\(\s*[rb]?{_QUOTED}\s*[,)]", sure=False),
    _Rule(
        ".fill(|.type(|.press_seq|.pressseq|.send_keys(|.sendkeys(|.setvalue(|.set_value(|.typetext(|.inputtext(",
        rf"\.(?:fill|type|press_sequentially|pressSequentially|send_keys|sendKeys|setValue|set_value|typeText|inputText)\(\s*{_QUOTED}",
        after="(?i:passw|passphrase|passcode|secret)",
    ),
    _Rule("convertto-securestring", rf"(?i:ConvertTo-SecureString)\s+(?:-\w{{1,20}}\s+){{0,3}}{_QUOTED}"),
    _Rule("password(", rf"PASSWORD\(\s*{_QUOTED}"),
    _Rule(
        ".fill(|.type(|.press_seq|.pressseq",
        rf"\.(?:fill|type|press_sequentially|pressSequentially)\(\s*(?=['\"][^'\"\n]{{0,60}}(?:passw|pwd|pass|secret|token|otp|pin)){_STRING}\s*,\s*{_QUOTED}",
    ),
)

_COMMANDS_BY_WORD = by_word(_COMMAND_RULES, lambda rule: rule.words.split("|"))

COMMAND_WORDS = tuple(_COMMANDS_BY_WORD)
"""The words, in lower case, without one of which no rule finds anything."""


def find_in_commands(text: Text, there: Collection[str]) -> Iterator[Hit]:
    """The secrets of a text that stand in command lines and calls, in no order; they may overlap.

    there  those of WORDS that stand in the text
    """
    for rule in rules_for(there, _COMMANDS_BY_WORD):
        for found in rule.finditer(text.raw):
            place = next(place for place in map(found.span, range(1, found.re.groups + 1)) if place[0] >= 0)
            value = text.raw[slice(*place)]
            if not is_placeholder(value) and (rule.sure or _is_told(value)):
                yield Hit(*place, "password")


def _is_told(value: str) -> bool:
    """Whether a value shows that it is a secret, where something else may stand in its place."""
    return is_mixed(value) or is_random(value) or is_unspoken(value) or is_foreign(value) or is_compound(value)


# ---- manifests of Kubernetes of kind Secret, as YAML or JSON ----


_SECRET = regex(r"kind[\"\\]*:\s*[\"\\]*Secret(?![A-Za-z])")

_DOCUMENT = regex(r"^---[ \t]*$|(?<!\\)\\++n---\\++n", re.M)

_DATA = regex(r"(?:string)?[dD]ata[\"\\]*:(?=\s|\\|\{)")

_YAML_ENTRY = regex(
    r"[ \t]*(?:\r?\n|\\+n)(?:[ \t]*[0-9]{1,6}[→\t|:])?([+-]?[ \t]+)[\"']?[\w.-]{1,100}[\"']?:[ ]*"
    r"[\"']?([^\s\"'\\|>]{4,}+)?[\"']?"
)

_JSON_ENTRY = regex(r"(?:\s|\\+n|[{,])*+\\*\"[\w.-]{1,100}\\*\"\s*:\s*\\*\"([^\"\\]{4,}+)\\*\"")


def find_in_manifests(text: str) -> Iterator[Hit]:
    """What stands under `data:` and `stringData:` of a manifest of kind Secret, as YAML or JSON."""
    borders = [0, *(found.end() for found in _DOCUMENT.finditer(text)), len(text)]
    for start, end in pairwise(borders):
        if _SECRET.search(text, start, end) is None:
            continue
        read = start  # an entry may be called `data`, too
        for data in _DATA.finditer(text, start, end):
            if data.start() < read:
                continue
            place = data.end()
            json = text[place : place + 3].lstrip().startswith("{")
            indent = None
            while entry := _JSON_ENTRY.match(text, place, end) if json else _YAML_ENTRY.match(text, place, end):
                if not json and (indent := indent or entry[1]) != entry[1]:
                    break
                last = 1 if json else 2
                if entry[last] is not None and not is_placeholder(entry[last]):
                    yield Hit(*entry.span(last), "kubernetes-secret")
                read = place = entry.end()


# ---- tables: Markdown, `psql`, CSV and tabs ----


_NAME = regex(r"[^\W\d][\w .-]{0,40}\Z")

_HEAD = regex(r"[\w .|,\t\"'`*\r-]*")  # names and what parts them: most lines have something else

_RULE = regex(r"[-+=|: \t]+\Z")

_LONGEST_LINE = 4096

_MOST_CELLS = 64

_WRAPS = " \t\"'`*\r"

_COLUMN_SEPARATORS = ("|", "\t", ",")


def find_in_tables(
    text: str, named: Iterable[int], kind_of: Callable[[str], str], is_secret: Callable[[str, str], bool]
) -> Iterator[Hit]:
    """The secrets that stand in the columns of tables.

    named      where something stands, in order, that the name of a secret has
    kind_of    what a name calls its value, "" where that is no secret
    is_secret  whether a value is one under a name of a kind
    """
    read = 0
    for place in named:
        if place < read:
            continue
        start, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
        if end < 0:
            return
        read = end + 1
        if end - start > _LONGEST_LINE or not _HEAD.fullmatch(text, start, end):
            continue
        for separator in _COLUMN_SEPARATORS:
            if text.find(separator, start, end) < 0:
                continue
            head = _cells(text, start, end, separator)
            kinds = _kinds(text, head, separator, kind_of)
            if kinds:
                read = yield from _below(text, end + 1, separator, len(head), kinds, is_secret)
                break


def _cells(text: str, start: int, end: int, separator: str) -> list[Place]:
    """The cells of a line, without what wraps their text."""
    cells = []
    for part in text[start:end].split(separator, _MOST_CELLS):
        left = len(part) - len(part.lstrip(_WRAPS))
        size = len(part.strip(_WRAPS))
        cells.append((start + left, start + left + size) if size else (start, start))
        start += len(part) + 1
    return cells


def _kinds(text: str, head: list[Place], separator: str, kind_of: Callable[[str], str]) -> dict[int, str]:
    """The columns that a head calls secrets, with their kinds; none where the line is no head."""
    names = [text[start:end] for start, end in head]
    told = [name for name in names if name]
    if len(told) < (3 if separator == "," else 2) or not all(map(_NAME.match, told)):
        return {}
    kinds = {number: kind_of(name) for number, name in enumerate(names) if name}
    return {number: kind for number, kind in kinds.items() if kind and (kind != "weak" or separator != ",")}


def _below(
    text: str, start: int, separator: str, columns: int, kinds: dict[int, str], is_secret: Callable[[str, str], bool]
) -> Generator[Hit, None, int]:
    """The secrets in the rows below a head; where the table ends."""
    while start < len(text):
        end = text.find("\n", start)
        end = end if end >= 0 else len(text)
        if end - start > _LONGEST_LINE:
            break
        if not _RULE.match(text, start, end):
            cells = _cells(text, start, end, separator)
            if len(cells) != columns:
                break
            for column, kind in kinds.items():
                first, last = cells[column]
                if first < last and is_secret(text[first:last], kind):
                    yield Hit(first, last, "key" if kind == "weak" else kind)
        start = end + 1
    return start


# ---- announced secrets: seed phrases, recovery codes, keys in groups, a code by mail ----


@dataclass(frozen=True, eq=False)
class _Announcement:
    """A secret that a text announces.

    kind    what the marker calls it
    words   one of them, in lower case, is in a text that announces it
    finds   finds it, as a regular expression, in a text in lower case; its first group is the secret
    """

    kind: str
    words: tuple[str, ...]
    finds: str


_JOINED = r"[\"'`*]{0,3}(?:[ \t]*[:=]|[ \t]+(?:is|was|are))?[ \t]*(?:\r?\n[ \t]*){0,2}[\"'`]?"

_CODES = "verification security one-time login sign-in authentication 2fa mfa otp".split()

_ANNOUNCEMENTS = (
    _Announcement(
        "seed-phrase",
        ("mnemonic", "phrase", "seed"),
        (
            rf"(?:mnemonic|(?:seed|recovery|backup|wallet)[ _-]?(?:phrase|words)){_JOINED}"
            r"((?:[a-z]{3,8}[ ]){11,23}[a-z]{3,8})(?![a-z])"
        ),
    ),
    _Announcement(
        "recovery-code",
        ("recovery code", "backup code", "scratch code", "recovery_code", "backup_code"),
        (
            r"(?:recovery|backup|scratch)[ _]codes?[^\n:]{0,60}:?[ \t]*\r?\n"
            r"((?:[ \t]{0,20}+(?:[-*]|[0-9]{1,2}[.)])?[ \t]{0,20}+[a-z0-9]{4,12}(?:[- ][a-z0-9]{4,12}){0,3}"
            r"[ \t]{0,20}+(?:\r?\n|\Z)){2,20})"
        ),
    ),
    _Announcement(
        "setup-key",
        ("this key", "setup key", "secret key", "entry key", "app password", "setup code", "secret:"),
        (
            rf"(?:(?:this|setup|secret|entry) key|secret|app password|setup code)(?:[ \t]for[^\n]{{0,40}})?{_JOINED}"
            r"((?:[a-z2-7]{4}[ ]){3,15}[a-z2-7]{4})(?=[\"'`.]?(?:\s|\Z))"
        ),
    ),
    _Announcement(
        "one-time-code",
        (*(f"{what} code" for what in _CODES), "passcode", "one-time password"),
        (
            rf"(?:{'|'.join(_CODES)})[ ](?:code|password|passcode)"
            rf"{_JOINED}([0-9]{{6,8}})(?![0-9.,:/-]*[0-9])"
        ),
    ),
)

_ANNOUNCEMENTS_BY_WORD = by_word(_ANNOUNCEMENTS, lambda rule: rule.words)

ANNOUNCEMENT_WORDS = tuple(_ANNOUNCEMENTS_BY_WORD)
"""The words, in lower case, without one of which no rule finds anything."""


def find_announced(text: Text, there: Collection[str]) -> Iterator[Hit]:
    """The announced secrets of a text, in no order.

    there  those of WORDS that stand in the text
    """
    for rule in rules_for(there, _ANNOUNCEMENTS_BY_WORD):
        for found in pattern(rule.finds).finditer(text.low):
            start, end = found.span(1)
            if rule.kind != "setup-key" or _is_key(text.raw[start:end]):
                yield Hit(start, end - (len(found[1]) - len(found[1].rstrip())), rule.kind)


def _is_key(groups: str) -> bool:
    """Whether groups of four are a key, and no words: they have a digit, or fewer vowels than words have."""
    letters = groups.replace(" ", "").lower()
    return any(map(str.isdigit, letters)) or sum(letter in "aeiou" for letter in letters) * 4 < len(letters)
