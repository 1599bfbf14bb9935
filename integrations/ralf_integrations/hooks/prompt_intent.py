"""What a prompt asks for of our notes: a route by its name, or to go on with what was left; and the name of the route
of a session that has none.

Precise rather than eager: a brief that nobody asked for costs the agent its window. A route is named after the first
request that says what it is about, or, where none does, once the session has worked. A greeting makes no route, and no
checkpoint.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

from ralf import config, routing
from ralf.errors import RalfError
from ralf.project import Project
from ralf.routing import DEFAULT
from ralf.text import cleaning
from ralf.text.patterns import regex
from ralf.transcripts.reader import Transcript, open_transcript, requests
from ralf_integrations.hooks.session import Session
from ralf_integrations.hooks.session_registry import KnownSession

Kind = Literal["load", "named", "continue", ""]

_READ = 20_000  # characters of a prompt
_CLOSE, _CLEARLY = 0.84, 0.06  # how like a name words must be, and how much more than any other
_SHORTEST_CLOSE = 5
_MOST_COMPARED = 5_000  # pairs of words and names of like length and the same numbers
_BEFORE = 40  # characters before a word in which a sign of a name may stand

NO_REQUEST = ("/", "<", "!", "#")
"""How prompts begin that ask the client, or that the client has written."""

_LOAD = regex(r"(?<![\w-])--load-context(?:([ =]+)[`'\"]?([^\s`'\",;]+))?")
_TOKEN = regex(r"[A-Za-z0-9][\w./-]*[A-Za-z0-9]|[A-Za-z0-9]")
_FLAT = regex(r"[-_./\s]+")
_NUMBER = regex(r"\d+")
_SHAPE = regex(r"[A-Za-z0-9][-_.][A-Za-z0-9]|\d")
_BEFORE_PATHS, _AFTER_PATHS = frozenset("/@-\\#="), frozenset("/@\\(")
_MOST_STARTS, _MOST_WORDS = 400, 8
_CUE = regex(
    r"(?:\broutes?|\bcontext (?:of|for)|\bresume|\bcontinue(?: with| on)?|\b(?:carry|go) on with)\s+(?:the\s+)?\Z",
    re.I,
)
_QUOTES = "`'\"\u201c\u201d\u2018\u2019\xab\xbb"


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for.

    kind    load: `--load-context`; named: a route is named in passing; continue: to go on; "": nothing
    route   the route that is named, "" where none is
    other   load: what stands for a route and names none
    about   continue: the words for the work that is meant, "" where none say it
    """

    kind: Kind = ""
    route: str = ""
    other: str = ""
    about: str = ""


def read(prompt: str, routes: Sequence[str]) -> Wish:
    """What a prompt asks for, given the names of all routes."""
    text, names_ = prompt[:_READ], _Names(routes)
    if found := _LOAD.search(text):
        word = (found[2] or "").rstrip(".,;:!?)")
        route = names_.exact(word) or names_.like([word])
        names_one = _is_shaped(word) or "=" in (found[1] or "")
        return Wish("load", route, word if not route and names_one else "")
    if route := _named(text, names_):
        return Wish("named", route)
    goes_on, about = wish_to_go_on(text)
    return Wish("continue", about=about) if goes_on else Wish()


def is_request(prompt: str) -> bool:
    """Whether a prompt asks for work and says for what: it is not for the client, nor for ralf, nor written by the
    client, nor a wish to go on, nor a greeting.
    """
    if prompt.lstrip().startswith(NO_REQUEST) or config.is_all(prompt):
        return False
    return not read(prompt, ()).kind and names_subject(prompt)


class _Names:
    """The names of all routes, to look words up in."""

    def __init__(self, routes: Sequence[str]) -> None:
        self._all = frozenset(routes)
        self._folded: dict[str, list[str]] = {}
        self._flat: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for route in routes:
            self._folded.setdefault(route.casefold(), []).append(route)
            flat = _flattened(route)
            self._flat.setdefault(tuple(_NUMBER.findall(flat)), []).append((flat, route))

    def exact(self, word: str) -> str:
        """The route of this name, or of the branch of this name; case counts only between names that differ in it."""
        if word in self._all:
            return word
        found = self._folded.get(word.casefold(), [])
        if not found and "/" in word and (slug := cleaning.slug(word)) in self._all:
            return slug
        return found[0] if len(found) == 1 else ""

    def like(self, words: Iterable[str]) -> str:
        """The one route that is surely meant by words that are like its name, "" for none, or more than one."""
        best: dict[str, float] = {}
        compared = 0
        for word in dict.fromkeys(map(_flattened, words)):
            if len(word) < _SHORTEST_CLOSE:
                continue
            matcher = difflib.SequenceMatcher(None, "", word, autojunk=False)
            for flat, route in self._flat.get(tuple(_NUMBER.findall(word)), ()):
                if (
                    abs(len(flat) - len(word)) <= max(2, len(flat) // 5)
                    and (compared := compared + 1) <= _MOST_COMPARED
                ):
                    matcher.set_seq1(flat)
                    if matcher.quick_ratio() >= _CLOSE and (ratio := matcher.ratio()) >= _CLOSE:
                        best[route] = max(best.get(route, 0.0), ratio)
        ranked = sorted(best.items(), key=lambda found: -found[1])
        if not ranked or (len(ranked) > 1 and ranked[0][1] - ranked[1][1] < _CLEARLY):
            return ""
        return ranked[0][0]


def _flattened(name: str) -> str:
    return _FLAT.sub("-", name.casefold())


def _named(text: str, routes: _Names) -> str:
    """The one route that a prompt names; "" for none, and for several."""
    tokens = list(_TOKEN.finditer(text))
    exact = {route for token in tokens if (route := routes.exact(token[0])) and _means(route, token, text)}
    if exact:
        return exact.pop() if len(exact) == 1 else ""
    words = [token[0] for token in tokens if _is_shaped(token[0]) and not _is_path(token, text)]
    words += [token[0] for token in tokens if _is_cued(token, text)]
    return routes.like([*words, *_phrases(tokens, text)])


def _means(route: str, token: re.Match[str], text: str) -> bool:
    """Whether a token that is a route's name is meant as one: a name that is a plain word needs a sign of it."""
    if _is_path(token, text) and "/" not in token[0]:
        return False
    if _is_shaped(route):
        return True
    around = text[token.start() - 1 : token.start()], text[token.end() : token.end() + 1]
    return all(sign and sign in _QUOTES for sign in around) or text.strip() == token[0] or _is_cued(token, text)


def _is_cued(token: re.Match[str], text: str) -> bool:
    return bool(_CUE.search(text[max(0, token.start() - _BEFORE) : token.start()]))


def _is_shaped(word: str) -> bool:
    """Whether a word has a form that names have and words of a language do not."""
    return len(word) >= 3 and bool(_SHAPE.search(word)) and not word.isdecimal()


def _is_path(token: re.Match[str], text: str) -> bool:
    """Whether a token is part of a path, an address or an option."""
    before, after = text[max(0, token.start() - 1) : token.start()], text[token.end() : token.end() + 1]
    return before in _BEFORE_PATHS or after in _AFTER_PATHS or "/" in token[0]


def _phrases(tokens: Sequence[re.Match[str]], text: str) -> Iterator[str]:
    """What is said in several words, as a name would join them: three or more, or two behind a sign of a name."""
    for first, token in enumerate(tokens[:_MOST_STARTS]):
        for count in range(2 if _is_cued(token, text) else 3, _MOST_WORDS + 1):
            found = tokens[first : first + count]
            between = text[token.start() : found[-1].end()]
            if len(found) < count or not between.replace(" ", "").replace("-", "").isalnum():
                break
            yield "-".join(match[0] for match in found)


# ---- how people ask an agent to go on, and what they say that asks for nothing yet, in their languages ----

# Expressions are tried at a text's beginning, in its first few hundred characters, and are linear in them.

_LETTER = r"[^\W\d_]"
_NO_SPACES = r"\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f"  # kana, Chinese, Thai: words stand without blanks between
_ENDS = rf"(?=[\s.,!?:\u2026\u3002\uff01\uff0c\u3001\uff1a\u2013\u2014-]|\Z|[{_NO_SPACES}])"

_POLITE = regex(
    r"\s*+(?:(?:please|pls|plz|ok(?:ay)?|hi(?: there)?|hey|hello|yes|yeah|now|so|then|well|great|right|alright|thanks"
    r"|(?:can|could|would|will) (?:you|we)|let(?:'?s| us)|go ahead and|and|just"
    r"|(?:i(?:'d like| want| need)|we(?: want| need)) (?:you )?to|we (?:can|should|will)|we'll"
    r"|bitte|gut|also|jetzt|dann|hallo|moin|servus|komm|lass(?:t)? uns|kannst du|können wir|wir"
    r"|s'il (?:te|vous) pla[iî]t|svp|stp|bonjour|salut|allez|alors|d'accord|peux[- ]tu|pouvez[- ]vous|on peut"
    r"|hola|por favor|vale|bueno|venga|puedes|podemos|olá|oi|pode|vamos(?: a)?|ciao|prego|per favore|va bene|dai"
    r"|puoi|hoi|hallo|alsjeblieft|graag|kun je|cześć|proszę"
    r"|привет|пожалуйста"
    r"|давай(?:те)?|ок|lütfen|hej|tack|snälla"
    r"|请|請|你好|好的?)(?:[\s,.!:\uff0c\u3002\uff01-]++|(?<=[请請好的])))*+",
    re.I,
)
"""Matches what stands before what is asked for: greetings, and words of politeness."""

_CONTINUE = (
    r"continue|resume|carry on|keep (?:going|working|at it)|go on|proceed|pick (?:it |this |things )?(?:back )?up"
    r"|where (?:were|are) we|where did (?:we|you) (?:stop|leave off|get to)|back to work"
    r"|weiter(?:machen|arbeiten|gehen|gehts|geht's)?|(?:mach|mache|machen wir|arbeite|geht?)(?: es| wir)?"
    r"(?: bitte| da| jetzt| mal| dort| hier)*+ weiter|(?:fahr|fahre|fahren)(?: wir| bitte)*+ fort|fortfahren|fortsetzen"
    r"|wo waren wir|wo sind wir stehen ?geblieben"
    r"|continuer|continuez|continuons|reprends|reprenez|reprendre|reprenons|poursuis|poursuivez|poursuivre|vas[- ]y"
    r"|on (?:continue|reprend|poursuit)|où en (?:étions|sommes)[- ]nous"
    r"|continúa|continúe|continua|continuar|continuemos|continuamos|sigue|seguir|sigamos|seguimos|prosigue"
    r"|retoma|retomar|adelante|(?:dónde|por dónde) (?:estábamos|íbamos|nos quedamos)"
    r"|prossiga|siga|retome|onde (?:parámos|paramos|estávamos)"
    r"|continuare|continuiamo|prosegui|proseguire|riprendi|riprendiamo|vai avanti|andiamo avanti|dove eravamo"
    r"|ga(?: maar| alsjeblieft)?(?: door| verder)|doorgaan|verder(?: gaan)?|waar waren we"
    r"|kontynuuj|kontynuować|dalej|jedź dalej|pokračuj(?:te|me)?"
    r"|fortsätt|fortsett|fortsæt|jatka(?:a|kaa)?|folytasd|continuă|nastavi|devam(?: et(?:elim)?)?"
    r"|lanjut(?:kan)?|tiếp tục"
    r"|продолж(?:ай|айте|им|ить|и|аем)"
    r"|дальше|продовжуй"
    r"|συνέχισε"
    r"|继续|繼續|接着(?:做|来|干)?|続け(?:て|る|よう)?"
    r"(?:ください)?|続き|계속(?:해(?:줘|주세요)?)?"
    r"|استمر|تابع|أكمل|واصل"
    r"|תמשיך|המשך|जारी रखें"
    r"|ทำต่อ"
)
_WISH = regex(rf"(?:{_CONTINUE}){_ENDS}[ \t]*+", re.I)
"""Matches the words that ask to go on."""

_OUR_WORK = (
    r"(?:with |on |from |at |mit |an |avec |con |com )?"
    r"(?:the |your |our |my |this |that |it|der |die |unserer |le |la |el )?"
    r"(?:(?:last|previous|earlier|interrupted|same|unfinished|remaining|next) )?"
    r"(?:work|tasks?|sessions?|plan|job|steps?|checkpoint|arbeit|aufgabe|schritt|teil|trabajo|tarea|travail|tâche)"
    r"(?: \d+)?"
)
_SAYS_NO_MORE = regex(
    rf"(?:[\s,]*+(?:please|pls|now|then|thanks|thank you|again|working|so|bitte|jetzt|stp|svp|por favor|per favore"
    r"|下去|吧|工作|from (?:here|there)"
    r"|(?:from |at )?where (?:we|you|i|it) (?:left (?:it |things )?off|stopped|were|was)"
    r"|(?:da,? )?wo (?:wir|du) aufgehört (?:haben|hast)|là où [^,.;]{1,30}+|donde [^,.;]{1,30}+"
    rf"|{_OUR_WORK})(?!{_LETTER}))*+",
    re.I,
)
"""Matches what may follow and says no more."""

_CLAUSE = regex(
    r"\s*+(?:\Z|[,.!?\u2026:\u3002\uff01\uff0c\u3001\uff1a\u2013\u2014\n](?!\w)|-\s"
    r"|(?:and|but|then|by|und|aber|dann|y|pero|luego|et|mais|puis|e|ma|poi|mas|depois|en|maar|i|ale|и|но)\s)",
    re.I,
)
"""Matches the beginning of one clause more, or the end."""

_ABOUT = regex(
    r"\s*+(?:with|on|mit|an|avec|sur|con|en|com|met|z|ze|med"
    r"|(?:working|writing|fixing|doing|implementing|building|testing)(?: on| with)?)\s++([^.,;:!?\n]{1,120}+)",
    re.I,
)
"""Matches what the work is that is to go on."""

_NOTHING = frozenset(
    "a again ahead allo already any anyone back begin bereit bien bitte bom bon bonjour bonsoir boas buenas "
    "buenos buongiorno bye can check chao chat ciao cool cześć da dag dank danke das day de dia did dies dobrý do "
    "doing done el else en es est evening everything fine for geht go going good goedemorgen gracias grazie great "
    "gruezi günaydin guten gut guy guys hallo hei hej hello help here hey hi hoi hola how howdy i is it ja jetzt "
    "jour just k kannst la left les let lets like los luego maintenant me mach merci merhaba moin more morgen "
    "morning my nas next nein new nice no noch noches not now nun nuit obrigado oi ok okay olá on one ou our ping "
    "please pls quoi ready right s salut salve say servus shall should si sim so start started status still sup "
    "sure tack tag tardes test thank thanks that the then there this to today tot tu u und up us was we welcome "
    "well what whats who with work works wir yeah yep yes yo you your ça да привет здравствуйте ок нет и что "
    "теперь".split()
)
"""Words that name no subject."""

_VERBS = frozenset(
    "add analyse analyze apply backport benchmark build bump change clean cleanup clone compare compile configure "
    "convert copy create debug delete deploy describe design disable document draft drop enable explain extend "
    "extract find fix format generate implement improve inline inspect install integrate investigate lint list "
    "load merge migrate mock move open optimise optimize parse patch plan port print profile publish push read "
    "rebase refactor release remove rename replace reproduce resolve revert review rewrite run search set setup "
    "show simplify sketch solve sort speed split summarise summarize support test trace translate try undo update "
    "upgrade upload use validate verify write".split()
)
"""Words with which an order begins that may be as short as two words."""

_ARTICLES = frozenset(
    "the a an this these all every my our den die das dem einen eine le la les un une el los las una".split()
)
"""Words by which an order as short as three words says that it has an object."""

_WORDS = regex(r"[^\W_][\w'\u2019]*")
_SHAPED = regex(r"[\w`/\\~@#$&=*+|<>{}\[\]()-][./\\_:#@=*+|<>{}\[\]()-]\w|`|\d|[a-z][A-Z]|[\"\u201c\u00ab]")
_UNSPACED = regex(rf"[{_NO_SPACES}]")
_FEW_WORDS, _FEW_CHARACTERS, _FEW_UNSPACED = 3, 30, 8
_MOST_READ = 600  # characters of a prompt that are looked at


def wish_to_go_on(text: str) -> tuple[bool, str]:
    """Whether a prompt asks to go on, whatever it asks for besides; and the words for the work that it means, "" where
    it names none.
    """
    text = text[:_MOST_READ]
    polite = _POLITE.match(text)
    wish = _WISH.match(text, polite.end() if polite else 0)
    if wish is None:
        return False, ""
    rest = _SAYS_NO_MORE.match(text, wish.end())
    end = rest.end() if rest else wish.end()
    if _CLAUSE.match(text, end) or _UNSPACED.match(text, end):
        return True, ""
    about = _ABOUT.match(text, end) or _ABOUT.match(text, wish.end())
    return (True, about[1].strip()) if about else (False, "")


def names_subject(text: str) -> bool:
    """Whether a request says what it is about. A short one in a language that nobody here reads is in doubt: no."""
    polite = _POLITE.match(text[:_MOST_READ])
    rest = text[polite.end() if polite else 0 :].strip()
    if _SHAPED.search(rest[:_MOST_READ]):
        return True
    words = [word.casefold() for word in _WORDS.findall(rest[:_MOST_READ])]
    telling = [word for word in words if word.rstrip("'\u2019") not in _NOTHING]
    if not telling:
        return False
    if len(words) > _FEW_WORDS or len(rest) > _FEW_CHARACTERS:
        return True
    if len(_UNSPACED.findall(rest)) > _FEW_UNSPACED:
        return True
    return len(telling) > 1 and (words[0] in _VERBS or not _ARTICLES.isdisjoint(words))


# ---- the route of a session that has none ----

_MOST_EVENTS = 2_000  # in which a session that has worked has called a tool
_MUCH = 2_000  # characters that an agent says that was asked for something


def name_by_request(session: Session, prompt: str) -> bool:
    """Name the session's route after the first of its requests that makes a name, its newest prompt included: people
    begin with a greeting, too. Whether it has a route now; a fork waits for the one of the session that it comes from.
    """
    if session.has_route:
        return True
    project, redact = session.project, partial(_redacted, session.project)
    for request in () if session.known.forked else (*first_requests(session), prompt):
        if is_request(request) and routing.name(project, request, session=session.payload.session, redact=redact):
            session.rerouted()
            return True
    session.note(unnamed=True)
    return False


def name_by_work(session: Session) -> bool:
    """Name the route of a session that has worked though no request of it makes a name. Whether what is new in its log
    has a route to go to.
    """
    if session.has_route or not session.known.unnamed:
        return True
    if session.transcript is None or not has_worked(session.transcript):
        return False
    if routing.number(session.project, session=session.payload.session):
        session.rerouted()
    return True


def route_of_ended(project: Project, known: KnownSession) -> str:
    """The route of a session that is over: a new one where it worked on none and has worked, "" where it has not."""
    if known.route != DEFAULT or not known.unnamed or not routing.names_sessions(project):
        return known.route
    try:
        worked = bool(known.transcript) and has_worked(open_transcript(Path(known.transcript)))
    except (RalfError, OSError):  # what is wrong with its log is no business of a session that begins
        return known.route
    return routing.number(project, session=known.session) if worked else ""


def has_begun(session: Session) -> bool:
    """Whether the session has a conversation of its own to go on with."""
    source = session.readable
    others = (request for request in first_requests(session) if request != session.payload.prompt.strip())
    return any(map(is_request, others)) or (source is not None and has_worked(source))


def has_worked(source: Transcript) -> bool:
    """Whether an agent has called a tool, or said more than one says to a greeting."""
    much = 0
    for event in islice(source.events(), _MOST_EVENTS):
        if event.kind == "assistant":
            much += len(event.text)
        if event.kind == "call" or much > _MUCH:
            return True
    return False


def first_requests(session: Session) -> Iterator[str]:
    """Returns what the session was asked for first, as far as its log tells yet."""
    return iter(()) if session.readable is None else requests(session.readable)


def _redacted(project: Project, text: str) -> str:
    from ralf.redact import redactor_for  # who only reads a prompt redacts nothing

    return redactor_for(project).text(text)
