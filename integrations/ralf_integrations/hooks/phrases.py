"""How people ask an agent to go on, and what they say that asks for nothing yet, in the languages in which they do.

Expressions are tried at a text's beginning, in its first few hundred characters, and are linear in them.
"""

from __future__ import annotations

import re

_LETTER = r"[^\W\d_]"
_NO_SPACES = r"\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f"  # kana, Chinese, Thai: words stand without blanks between
_ENDS = rf"(?=[\s.,!?:\u2026\u3002\uff01\uff0c\u3001\uff1a\u2013\u2014-]|\Z|[{_NO_SPACES}])"

_POLITE = re.compile(
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
_WISH = re.compile(rf"(?:{_CONTINUE}){_ENDS}[ \t]*+", re.I)
"""Matches the words that ask to go on."""

_OUR_WORK = (
    r"(?:with |on |from |at |mit |an |avec |con |com )?"
    r"(?:the |your |our |my |this |that |it|der |die |unserer |le |la |el )?"
    r"(?:(?:last|previous|earlier|interrupted|same|unfinished|remaining|next) )?"
    r"(?:work|tasks?|sessions?|plan|job|steps?|checkpoint|arbeit|aufgabe|schritt|teil|trabajo|tarea|travail|tâche)"
    r"(?: \d+)?"
)
_SAYS_NO_MORE = re.compile(
    rf"(?:[\s,]*+(?:please|pls|now|then|thanks|thank you|again|working|so|bitte|jetzt|stp|svp|por favor|per favore"
    r"|下去|吧|工作|from (?:here|there)"
    r"|(?:from |at )?where (?:we|you|i|it) (?:left (?:it |things )?off|stopped|were|was)"
    r"|(?:da,? )?wo (?:wir|du) aufgehört (?:haben|hast)|là où [^,.;]{1,30}+|donde [^,.;]{1,30}+"
    rf"|{_OUR_WORK})(?!{_LETTER}))*+",
    re.I,
)
"""Matches what may follow and says no more."""

_CLAUSE = re.compile(
    r"\s*+(?:\Z|[,.!?\u2026:\u3002\uff01\uff0c\u3001\uff1a\u2013\u2014\n](?!\w)|-\s"
    r"|(?:and|but|then|by|und|aber|dann|y|pero|luego|et|mais|puis|e|ma|poi|mas|depois|en|maar|i|ale|и|но)\s)",
    re.I,
)
"""Matches the beginning of one clause more, or the end."""

_ABOUT = re.compile(
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

_WORDS = re.compile(r"[^\W_][\w'\u2019]*")
_SHAPED = re.compile(r"[\w`/\\~@#$&=*+|<>{}\[\]()-][./\\_:#@=*+|<>{}\[\]()-]\w|`|\d|[a-z][A-Z]|[\"\u201c\u00ab]")
_UNSPACED = re.compile(rf"[{_NO_SPACES}]")
_FEW_WORDS, _FEW_CHARACTERS, _FEW_UNSPACED = 3, 30, 8
_READ = 600  # characters of a prompt that are looked at


def goes_on(text: str) -> tuple[bool, str]:
    """Whether a prompt asks to go on, whatever it asks for besides; and the words for the work that it means, "" where
    it names none.
    """
    text = text[:_READ]
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
    polite = _POLITE.match(text[:_READ])
    rest = text[polite.end() if polite else 0 :].strip()
    if _SHAPED.search(rest[:_READ]):
        return True
    words = [word.casefold() for word in _WORDS.findall(rest[:_READ])]
    telling = [word for word in words if word.rstrip("'\u2019") not in _NOTHING]
    if not telling:
        return False
    if len(words) > _FEW_WORDS or len(rest) > _FEW_CHARACTERS:
        return True
    if len(_UNSPACED.findall(rest)) > _FEW_UNSPACED:
        return True
    return len(telling) > 1 and (words[0] in _VERBS or not _ARTICLES.isdisjoint(words))
