"""Lasting instructions in a long message, in which a person sets work out: which of its sentences hold for all work.

Such a message tells a story, gives tasks, repeats what others said and lays down rules, often without the words that a
short rule begins with. So each sentence is weighed by several signs: first by the part in which it stands ("how we
work", "for as long as you are here", "that goes for everything"), then by its form: orders, prohibitions, general
subjects. What is for this once, only supposed, quoted or told about the past counts against it. Signs are looked for in
English, German, French, Spanish and a little in Italian, Portuguese and Dutch; in any other language a rule is kept
with its request only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from ralf.summarize.english import is_question
from ralf.text.matcher import AnyOf
from ralf.text.patterns import regex
from ralf.text.sentences import Sentence

ENOUGH, PERHAPS, SURE = -0.5, -2.0, 0.0
"""The weight from which a sentence of a long message is a rule, that from which it may be one, and that from which a
sentence of a short message is.
"""

_LEAST, _LONG, _MOST = 2, 40, 60  # words


_ONCE = AnyOf(
    r"\b(?:for now|for the (?:moment|time being)|this (?:time|once|round|change|refactor|pass)|just (?:this|for)"
    r"|(?:in|for|during|on|with) (?:this|that|the first|stage|step|phase|part|round) (?:\w+ )?(?:change|pr"
    r"|pull request|round|step|session"
    r"|release|version|refactor(?:ing)?|pass|report|run|test|task|one|delivery|migration|import|part|stage"
    r"|ticket|patch|branch|sprint"
    r"|first|comparison|evening|week)\b|first (?:version|run|draft|pass|step|only)|today|tonight|tomorrow"
    r"|this (?:week|morning|evening)"
    r"|in stage one|only once|we only run it once|temporar\w+|until (?:the|i|we|then|after|\w+day)|till"
    r"|off by default)\b",
    r"\b(?:for|in) the (?:comparison|meantime|report engine)\b|\byet\W{0,3}$|^skip\b|\bleave\b[^.]{0,40}\b(?:alone"
    r"|out|as (?:it|they)|unmapped|in place)\b",
    r"\b(?:don['\u2019]?t|dont) (?:worry|bother|spend|hesitate|be shocked|mind|get|ask me if|fix it now"
    r"|do \w+ now)\b",
    r"\b(?:vorerst|zunächst|erstmal|fürs erste|diesmal|heute|(?:in|für) diese[rmnsr]? (?:ersten )?\w+"
    r"|pour (?:l['\u2019]instant|le moment)"
    r"|cette fois|aujourd['\u2019]hui|dans un premier temps|por (?:ahora|el momento)|esta vez|hoy|para esta \w+"
    r"|de momento|todavía"
    r"|per ora|per adesso|oggi|questa volta|por agora|hoje|voorlopig|vandaag|deze keer|noch keine?n?)\b",
)


_LEADS = AnyOf(
    # for how long, or for how much of the work
    r"\b(?:from (?:now|here|today) on|from today|for good|for ever|forever|once and for all|for as long as"
    r"|as long as you|all along|all the time"
    r"|at all times|throughout|permanent(?:ly)?|generally|in general|general (?:things?|rules?|remarks?|points?)"
    r"|whenever|every (?:session|time)|any (?:task|other day)|next times?|in (?:the )?future(?! \w)|to come"
    r"|in any that follow)\b"
    r"|\bnot (?:only|just|merely) (?:for |in |on )?(?:today|now|this|here)\b|\brather than (?:for |only )*this\b",
    r"\bcounts? for\b|\b(?:goes|holds?|appl(?:y|ies)|valid|true|binding|meant|stands?) (?:\w+ )?(?:for|to|in"
    r"|throughout"
    r"|from|always)\b",
    r"\b(?:in|for|across|to|on) (?:all|every|everything|everyone|anything|any|the (?:whole|entire)) "
    r"(?:(?:the|this|that|of|my|our) )*(?:\w+ )?(?:work|repo(?:sitory)?|project|codebase|code|sessions?|tasks?|time"
    r"|changes|you|we|i|done|duration|cooperation|parts)\b",
    # what it is
    r"\b(?:rules?|conventions?|guidelines?|principles?|policies|standards|constraints|conditions|boundaries"
    r"|agreements?|no-?go(?:e?s)?|will-nots|dos and don'?ts|don'?ts|taboos?|expectations|habits|ways? of working"
    r"|(?:house|code|coding|writing|working) style|style|standing \w+)\b(?! (?:engine|file|files|set|id|table"
    r"|guide))",
    r"\b(?:how (?:we|i|you)(?:['\u2019]re| are)? (?:\w+ ){0,3}(?:work|do things|treat|handle|do it)"
    r"|how things are done"
    r"|what (?:i|we) (?:\w+ ){0,2}(?:expect|insist|ask|require|do(?:n['\u2019]t| not) want)|who works? (?:on|in"
    r"|with))\b",
    # how much it matters
    r"\b(?:important|strict|seriously|serious about|non-?negotiable|not negotiable|insist|remember|keep in mind"
    r"|bear in mind|beats all|care about|matters? to me|in your bones|careful beyond"
    r"|(?:ask|asks|asking) (?:of )?(?:you|everyone|everybody|anyone) (?:\w+ ){0,2}(?:generally|for|to)"
    r"|like you to (?:follow"
    r"|respect|stick|adopt|remember)|please adopt|let me add|house rules?)\b",
    r"\b(?:regeln?|grundsätz\w+|prinzipien|generell|grundsätzlich|gilt|gelten|vereinbarung\w*|konventionen|wichtig"
    r"|spielregeln|verbindlich|bedingungen|künftig|in zukunft|immer wenn|arbeitsweise|konsequent|merk dir|solange du"
    r"|règles?|principes?|conventions|consignes|valables?|vaut|vaudront|désormais|permanente?|pour tout(?:e|es)?"
    r"|important|à respecter|respecter ceci|exigences|habitudes|en général|tout le temps"
    r"|reglas?|normas?|principios|condiciones|todo el (?:tiempo|proyecto|trabajo)|importante|en general|forma de"
    r" trabajar|costumbres?|manera de trabajar|siempre que|regole|principi|regras|regels|afspraken|altijd)\b",
    r"\b(?:zusammenarbeit|das bleibt (?:auch )?so|dauerhaft|auf dauer|ab (?:jetzt|sofort|heute)|bei uns (?:gilt"
    r"|ist|wird)"
    r"|worauf ich (?:achte|wert)|so arbeiten wir|mir (?:ist|sind) (?:\w+ ){0,2}wichtig|auch (?:in zukunft"
    r"|später)|hausregel\w*"
    r"|façon de travailler|manière de travailler|méthode de travail|je tiens|une fois pour toutes|à l['\u2019]avenir"
    r"|à partir de maintenant|à chaque fois|quoi qu['\u2019]il arrive|dans tous les cas|pour toujours"
    r"|para siempre|de ahora en adelante|a partir de (?:ahora|hoy)|en adelante|trabajar conmigo|me importan?"
    r"|pase lo que pase"
    r"|always (?:true|the case)|true in|collaborat\w+|work(?:ing)? (?:together|with me)|pet peeves|deal-?breakers?"
    r"|never change[sd]?|hard limits?|(?:my|our) requirements for|(?:won['\u2019]t"
    r"|do(?:es)?n['\u2019]t) change when|auxquelles je tiens)\b",
)
"""What leads over to how to work: the sentences up to the end of its paragraph, or the list below it, are under it."""

_LOOKS_BACK = AnyOf(
    r"^(?:and |but )?(?:that(?:['\u2019]?s)?|this|these|those|it|both|all (?:of )?(?:this|that)|the same"
    r"|das|dies\w*|beides|cela|ça|c['\u2019]est|ces|eso|esto|estas?|lo mismo)\b[^.:]{0,25}?"
    r"\b(?:goes|holds?|appl(?:y|ies)|counts?|valid|stands?|for (?:good|ever|all)|meant|gilt|gelten|vaut|valent"
    r"|valable|vale|valen|is (?:a|the|my|our) rule|always)\b",
)

_EXCEPTS = AnyOf(
    r"\b(?:not for you|no rule|n(?:o|['\u2019])t (?:to be )?(?:a )?rules?|isn['\u2019]?t a rule|to be a rule)\b"
)

_TELLS_STORY = AnyOf(r"\b(?:background|context|problem|history|what there is|misc|bug|plan|task|order|goal|deadline)\b")

_ORDER = regex(
    r"^(?:\W{0,9}(?:and|but|also|then|so|please|just|oh|ok|finally|second|third|first"
    r"|one more thing|\w{1,3}[.)])[ ,:]{1,3}){0,4}+"
    r"(?:add|ask|assume|avoid|begin|call|check|collect|commit|copy|create|declare|do|document|drop|explain"
    r"|export|flag|follow|format|give|group"
    r"|handle|ignore|include|keep|label|leave|limit|link|list|log|make|mark|mention|name|pin|prefer|prefix|print"
    r"|put|quote|raise|read|record"
    r"|report|respect|return|run|say|send|separate|show|shut|sign|sort|start|stick|stop|store|suggest|talk|tell"
    r"|test|treat|turn|update|use"
    r"|validate|write|wrap)\b",
    re.I,
)


_ASIDE = regex(r"\s?\([^()\n]{0,200}\)")

_VERB = _ORDER.pattern.rpartition("(?:add|")[2].partition(")")[0]


_IF_EVER = AnyOf(
    r"\bif (?:we|i|it|they) (?:ever|were|did|had|went|used|moved|decided|wanted)\b|\bif only\b"
    r"|\bwenn wir irgendwann\b"
)

_THIS_ONE = AnyOf(r"\b(?:it|that|this|them|the (?:bug|fix|error|problem|first|second|third|old|new))\b")

_CLAUSES = regex(
    r"; |: |\s[\u2013—-]\s|, (?=(?:and )?(?:i|he|she|we|they|it|someone|somebody|that|this|so|because|since|as"
    r"|which|where|then|ich|weil|denn|da"
    r"|car|parce|c['\u2019]est|porque|que)\b)|(?:(?<=,)| ) ?(?=(?:hence|so) )",
    re.I,
)

_NOT_ONCE = AnyOf(
    r"\bnot (?:only|just|merely) (?:for |in |on )?(?:today|now|this|here)\b|\b(?:today|now|this one|heute|jetzt|hoy) "
    r"(?:and|or|und|et|y|oder|ou) (?:in |on |for )?(?:any|every|all|whenever|always|later|immer|toujours|siempre)\b"
    r"|\brather than (?:for |only )*this\b|\bnicht nur (?:heute|jetzt|hier)\b|\bpas (?:que"
    r"|seulement) (?:pour )?aujourd"
    r"|\bno solo hoy\b"
)


_DESCRIBES = regex(r"\b(?:which|who) (?:never|always) (?!(?:is|has|needs|belongs|goes)\b)[a-z]{2,40}s\b")
"""What something does, not what is to be done: ", which never finishes"."""

_NOTHING = -9.0  # the weight of a question and of what only announces

_FEW = 12  # words of a short clause

_SIGNS: dict[str, Callable[[str], object]] = {
    "ever": AnyOf(
        r"\b(?:never|always|ever|whenever|every time|at all times|at no (?:time|point)|under no circumstances"
        r"|without exceptions?"
        r"|no matter|whatever (?:you|happens|it)|from (?:now|here|today) on|(?:any|every|no)where|in general"
        r"|as a rule|for good"
        r"|standing rule|both now|now or later|in (?:the )?future(?! \w)|at any (?:time|point))\b",
        r"\b(?:nie|niemals|immer|stets|grundsätzlich|generell|ausnahmslos|nirgends|nirgendwo|überall|jedes ?mal"
        r"|ab (?:jetzt|sofort)"
        r"|künftig|in zukunft|unter keinen umständen|jamais|toujours|systématiquement|désormais|dorénavant|partout"
        r"|nulle part"
        r"|à chaque fois|nunca|jamás|siempre|cada vez|a partir de ahora|en ningún caso|sin excepción|mai|sempre"
        r"|ogni volta"
        r"|d'ora in poi|em nenhum caso|nooit|altijd|voortaan|steeds)\b",
    ),
    "forbids": AnyOf(
        r"\b(?:don['\u2019]?t|do not|must(?: not|n['\u2019]?t)|may not|shall not|should(?: not|n['\u2019]?t)"
        r"|not allowed|forbidden|prohibited|off[- ]limits|hands off|taboo|isn['\u2019]?t allowed|no longer|never a)\b",
        r"(?:^|[:;,] |and |but )(?:please |also |absolutely |so )?(?:no|nothing|nobody|no one|none|neither)\b(?!,"
        r"| need| problem| idea| longer)",
        r"^not (?:in|on|for|at|even|to)\b|\byou (?:also )?(?:never|don['\u2019]?t|do not|must not|may not)\b",
        r"\b(?:nothing|nobody|no one)\b[^.]{0,50}\b(?:may|must|can|is|gets?|goes|leaves?|that|else)\b|\bnot (?:even"
        r"|a single|to be)\b",
        r"\b(?:kein(?:e|en|er|em)?|nichts|niemand|verboten|nicht (?:mehr|ohne)|(?:darf|dürfen|soll|sollen|wird"
        r"|werden)\b[^.]{0,60}"
        r"\bnicht)\b|\bohne\b[^.]{0,40}\b(?:freigabe|absprache|rücksprache|zu fragen)\b",
        r"\b(?:aucune?|rien|personne ne|interdit|pas (?:de|d['\u2019]|un|le|la|les)|ne [^.]{1,30} (?:pas|plus|rien)"
        r"|sans me)\b",
        r"\b(?:ningun[oa]?|nada|nadie|prohibid[oa]|no (?:\w+[aeo]s|pueden?|se (?:puede|debe)|debes?|toques|cambies"
        r"|uses|subas|hagas)"
        r"|nessun[oa]?|niente|vietato|nenhum[a]?|não|geen|niets|niemand)\b",
    ),
    "all": AnyOf(
        r"\b(?:every|each|any|all|anything|everything|anyone|everyone|both|only|exclusively|strictly|exactly"
        r"|verbatim|throughout"
        r"|by default|max\.?|at most|at least|no more than|under \d+|per \w+)\b",
        r"\b(?:jede[rsnm]?|alle[rsnm]?|alles|nur|ausschließlich|höchstens|mindestens|pro|chaque|tou(?:t|te|s|tes)"
        r"|seulement"
        r"|uniquement|que|au (?:plus|moins)|cada|tod[oa]s?|sólo|solo|solamente|únicamente|ogni|tutt[oiae]|soltanto"
        r"|cada|apenas"
        r"|elk[e]?|alleen|uitsluitend)\b",
    ),
    "binds": AnyOf(
        r"\b(?:must|has to|have to|needs? to|need to|shall|(?:is|are|be) to be|stays?|remains?|counts? as"
        r"|is required|are required"
        r"|belongs? (?:in|to)|goes (?:to|in|into)|gets? an?\b|comes? (?:with|in)|be pinned|i (?:want|expect|prefer"
        r"|need|insist|would like"
        r"|['\u2019]d like)|prefer|stick (?:to|with)|please)\b",
        r"\b(?:muss|müssen|sollen|soll|bitte|bleib(?:t|en)|sind (?:nur )?zu|ist (?:nur )?zu|gilt|gelten"
        r"|ich (?:möchte|will|erwarte)"
        r"|lieber|doit|doivent|il faut|rest(?:e|ent)|s['\u2019]écri(?:t|vent)|merci de|je (?:veux|préfère|souhaite)"
        r"|debe[ns]?|tiene[n]? que"
        r"|hay que|quiero|prefiero|por favor|deve|devono|bisogna|per favore|preferisco|moet(?:en)?|graag"
        r"|alsjeblieft)\b",
    ),
    "polite": AnyOf(
        r"\b(?:i(?:['\u2019]d| would| do)|we(?:['\u2019]d| would)) (?:\w+ ){0,2}(?:like|love|ask|want|prefer"
        r"|appreciate|be"
        r" (?:grateful|glad|happy|thankful)|rather|expect|wish|request|insist)\b|\b(?:ich hätte gern"
        r"|ich würde (?:dich|sie)"
        r" bitten|je (?:voudrais|souhaiterais|préférerais|te demanderais)|j['\u2019]aimerais|me gustaría|quisiera|te"
        r" agradecer(?:ía|é)|preferiría)\b"
    ),
    "in general": AnyOf(
        r"(?:^|[,;:] |\b(?:and|but|please|so) )(?:when(?:ever)?|if|where|before|after|once|as soon as|in case|unless)"
        r" (?:you|a|an|any|some|something|somebody|there['\u2019]s|there is|one|in doubt|unsure|not sure)\b",
        r"\b(?:wenn du|falls|sobald|bevor du|im zweifel|si tu|quand tu|dès que|avant de|en cas de|si (?:ves|no sabes"
        r"|encuentras|un)"
        r"|cuando|antes de|en caso de|se (?:non|trovi)|quando|als je|voordat)\b",
    ),
    "when you": AnyOf(
        r"\b(?:when(?:ever)?|each time|every time|before|after) you(?! (?:are|['\u2019]re) (?:done|finished|through))\b"
        r"|\b(?:wenn|bevor|sobald) du\b|\b(?:quand|lorsque|chaque fois que|avant que) tu\b|\b(?:cuando"
        r"|cada vez que) \w+es\b"
    ),
    "contrasts": AnyOf(
        r",? (?:and )?not \w+|\binstead of\b|\brather than\b|\bnever an?\b|\bstatt\b|\bsondern\b|\bau lieu de\b"
        r"|\ben vez de\b"
    ),
    "order": _ORDER.search,
    # An order in English: a verb without a subject before an object. No list of verbs: any word that is none of these.
    "command": AnyOf(
        r"^\W{0,9}(?:(?:and|but|also|then|so|please|just|oh|ok|always|never|only|kindly)\W{1,9})*"
        r"(?!(?:the|an?|this|that|these|those|there|here|it|its|he|she|they|we|i|you|my|your|our|his|her|their|one"
        r"|some|all"
        r"|any|each|every|no|if|when|while|where|after|before|since|because|as|for|from|with|without|in|on|at|by|to"
        r"|of|into"
        r"|over|under|about|what|which|who|how|why|is|are|was|were|be|been|has|have|had|will|would|can|could|may|might"
        r"|shall|should|must|not|or|nor|yes|no|also|most|many|few|both|until|than|like|even|only|now|today|\w+(?:s"
        r"|ed|ing|ly"
        r"|tion))\b)[a-z]{2,}\s+(?:the|an?|this|these|those|it|them|me|us|my|your|our|every|each|all|any|only|no"
        r"|with|in|on"
        r"|to|from|at|for|up|down|out|before|after|as|if|when|what|that|which|who|where|how|by|about|nothing|anything"
        r"|everything|and|or)\b",
    ),
    "generic": AnyOf(
        r"^\W{0,9}+(?:(?:and|also|then|oh|so)\W{1,9}+){0,4}(?:[A-Za-z][\w.'\u2019-]{0,60}\s{1,9}){0,4}"
        r"(?:[\w-]{1,60}s|[A-Z]\w{1,60}|\w{1,60}ing|style"
        r"|code) (?:are|is|have|stay|get|go"
        r"|live|belong|use|take|come|follow|return|begin|start|end|carry|declare)s?\b(?! (?:about|around|roughly"
        r"|already|still|broken|slow))",
        r"^(?:[\w.-]+ ){0,3}\w+ (?:gets?|goes|stays?|lives?|starts?|begins?|ends?|belongs?|counts?|declares?"
        r"|needs?) \b",
    ),
    # A clause about things in general: a plural without an article, and what they do: "builds run with nice".
    "plural": AnyOf(
        r"^\W{0,9}(?:(?:and|also|so|but|then)\W{1,9}){0,4}+(?!(?:this|these|those|its|the|his|my|our|your|their|there"
        r"|here|if|as"
        r"|it|we|they|people|some)\b)"
        r"(?:[\w.'\u2019/-]{1,60} ){0,3}(?!(?:this|its|his|is|was|has|as|us|yes|always|perhaps|thanks|does|goes|times"
        r"|lots|loads|tells|says)\b)"
        r"[a-z-]{3,60}s (?:(?:only|never|always|also|do not|don['\u2019]?t|must|have to|has to|should|shall|may|can"
        r"|cannot|aren['\u2019]?t) )?"
        r"(?!(?:of|and|or|in|on|at|to|for|from|with|by|that|which|who|as|but|so|were|was|had|about|i|we|you|they|it"
        r"|the|a|an|is"
        r"|has|this|because|since|when|if|after|before|over|under|than|then|per|via|there|here|not|all|no)\b)"
        r"[a-z]{2,60}(?<!ed)(?<!s)(?<!ing)\b",
    ),
    # A clause about any of a kind, or about nobody in particular.
    "indefinite": AnyOf(
        r"^\W{0,9}(?:(?:and|but|also|so|then|oh|ok|und|et|y)\W{1,9})*(?:an?|any|anything|anyone|whatever|whoever|one"
        r"|each|every"
        r"|everything|all|no|nothing|nobody|ein\w*|jede\w*|alle[sr]?|wer|was|kein\w*|on|toute?s?|tous|chaque"
        r"|aucun\w*|rien|tod[oa]s?"
        r"|cada|ning\w+|nada|quien|se)\b",
    ),
    "is done": AnyOf(
        r"\b(?:is|are|be|gets?|stays?|remains?|isn['\u2019]?t|aren['\u2019]?t) (?:\w+ly |to be |only |never |always "
        r"|not |also"
        r" |exactly |all ){0,4}+(?:\w{2,}ed|\w{2,}en|kept|put|set|sent|built|made|run|read|left|held|told|found|done"
        r"|shown|cut|lost)\b",
        r"\b(?:wird|werden|ist zu|sind zu|bleibt|bleiben|se \w+[ae]n?|est|sont|reste(?:nt)?|va|vont|passe(?:nt)?"
        r"|s['\u2019]\w+)\b",
    ),
    "negates": AnyOf(
        r"n['\u2019]t\b|\b(?:not|no|never|none|nothing|nor|without|cannot|nicht|kein\w*|nie|nichts|ne|n['\u2019]\w+"
        r"|pas|jamais"
        r"|aucun\w*|rien|sans|no|nunca|jamás|ningun\w*|nada|sin)\b"
    ),
    "you": AnyOf(r"\b(?:you|your|du|dir|dein\w*|tu|te|ton|tes|vous|votre|usted|tus?|contigo|je|jij|jouw)\b"),
    "opens": AnyOf(
        r"^\W{0,9}(?:and |but |also |then |so |please |oh |absolutely )*(?:never|always|don['\u2019]?t|do not|no"
        r"|nothing"
        r"|only|every|each|any|all"
        r"|you (?:never|don['\u2019]?t|do not|always|may|must)|nie(?:mals)?|immer|kein\w*|bitte|ne|jamais|toujours"
        r"|aucun\w*|pas de|nunca|siempre"
        r"|no \w+[aeo]s|sempre|mai)\b",
    ),
    "in case": AnyOf(
        rf"\b(?:when(?:ever)?|if|where|before|after|once|unless) (?:you|a|an|any|there['\u2019]s|there is|somebody"
        rf"|something|in doubt|unsure)\b"
        rf"[^.;:]{{0,150}}?(?:,|\bthen\b) (?:then |please |you |just )?(?:add|{_VERB})\b",
        rf"(?:^|, |so |and )(?:please )?(?:add|{_VERB})\b[^.;:]{{0,150}}\b(?:when(?:ever)?|before|after|unless"
        rf"|each time"
        rf"|once) (?:you|a|an|any|there)\b",
    ),
    "no and no": AnyOf(
        r"\b(?:no|pas de|kein\w*|sin|senza) [\w.:-]+(?: \w+)?,? (?:and |or |et |und |y )?(?:no|pas de|kein\w*|sin"
        r"|senza)\b"
    ),
    "supposes": AnyOf(
        r"\b(?:(?<!\bi )(?<!\bi also )would|could|might|wouldn['\u2019]?t|if (?:we|i) (?:were|did|had|went)"
        r"|i(?:['\u2019]d| would) say"
        r"|someday|hopefully|maybe|perhaps"
        r"|it['\u2019]d be|lovely|nice to have|lean towards)\b",
        r"\b(?:würde[nst]?|hätte[nst]?|müsste[nst]?|könnte[nst]?|wäre[nst]?|vielleicht|irgendwann|voudrai[st]"
        r"|pourrai[st]|serai[st]"
        r"|faudrait|peut-être|podría|sería|quizás?|tal vez|forse|potrebbe|talvez|zou(?:den)?|misschien)\b",
    ),
    "tells": AnyOf(
        r"\b(?:was|were|had|did|didn['\u2019]?t|wasn['\u2019]?t|used to|been|went|got|took|made|wrote|said|says|told"
        r"|thought|found|lost|came"
        r"|happen(?:s|ed)|broke|tried|asked|started|stopped|since (?:the|we|i|a)|last (?:week|month|year|time)|ago"
        r"|in (?:19|20)\d\d"
        r"|(?:there(?:['\u2019]s| is| are))|i(?:['\u2019]m| am|['\u2019]ve| have| think| know| guess| tried"
        r"| suspect)|we(?:['\u2019]re|['\u2019]ve| have| are| had"
        r"| think)|which (?:is|was|are)|it['\u2019]s|it works|currently|at the moment|happens)\b",
        r"\b(?:war(?:en)?|hatte[nst]?|wurde[nst]?|gab|habe[nt]?|gibt es|hat|était|étaient|avait|a (?:été|eu|dit)|ont"
        r"|il y a|c['\u2019]est"
        r"|era|fue|fueron|tenía|había|hizo|hay|dejó|es un[ao]?|stato|aveva|c['\u2019]è|heeft|hebben)\b",
    ),
    "i do": AnyOf(
        r"^\W{0,9}(?:and |but |so |also )*(?:i|we|he|she|they|ich|wir|er|sie|on|nous|il|elle|ils|nosotros|él"
        r"|ella)\b(?! (?:want|need|expect|prefer|insist|don['\u2019]?t use|don['\u2019]?t do|only|use|identify|never"
        r"|always))",
    ),
}

_WEIGHTS = {
    "any": -3.5,
    "in a part about work": 2.6,
    "item": -0.3,
    "quotes": -1.4,
    "looks back": -1.5,
    "once": -2.6,
    "if ever": -2.0,
    "beside a rule": 1.3,
    "ever": 2.3,
    "forbids": 1.0,
    "all": 0.9,
    "binds": 0.8,
    "polite": 1.7,
    "in general": 0.2,
    "when you": 1.4,
    "contrasts": 0.3,
    "order": 0.5,
    "command": 0.3,
    "generic": 0.4,
    "plural": 1.3,
    "indefinite": 0.8,
    "is done": 0.5,
    "negates": 1.0,
    "you": 1.1,
    "opens": 0.7,
    "in case": 0.1,
    "no and no": 1.5,
    "short": -0.6,
    "this one": -0.8,
    "supposes": -1.0,
    "tells": -1.4,
    "tells a rule": 0.2,
    "i do": -0.9,
}
"""What each sign adds to a sentence's weight: a logistic regression on `tests/labels/honest_prompts.*`, rounded."""

_OF_ORDERS = frozenset(
    (
        "ever",
        "forbids",
        "binds",
        "polite",
        "when you",
        "in case",
        "order",
        "command",
        "no and no",
        "opens",
        "plural",
        "all",
        "generic",
        "indefinite",
        "is done",
        "negates",
    )
)

_OF_RULES = _OF_ORDERS - {"all", "generic", "indefinite", "is done"}

_FOR_ONCE = frozenset(("once", "if ever", "supposes", "quotes", "tells"))

_QUOTE = regex(
    r"\"[^\"\n]{8,}+\"|\u201c[^\u201c\u201d\n]{8,}+\u201d|\u201e[^\u201c\u201d\u201e\n]{8,}+[\u201c\u201d]"
    r"|«[^«»\n]{8,}+»|(?<!\w)'[^'\n]{12,}+'(?!\w)|\u2018[^\u2018\u2019\n]{12,}+\u2019(?!\w)"
)


def unquoted(text: str) -> str:
    """A sentence without what stands in quotation marks, a word or two aside: those are somebody else's words."""
    return _QUOTE.sub(lambda found: "…" if len(found[0].split()) > 2 else found[0], text)


def laid_down(said: Sequence[Sentence], *, most: int = 10, most_perhaps: int = 6) -> list[tuple[Sentence, bool]]:
    """What a long message lays down, in order, and whether for all work or, as far as its words tell, for this work:
    the `most` weightiest rules, and of the orders that may be one the `most_perhaps` weightiest.
    """
    found = weights(said)
    rules = {n for n in range(len(said)) if found[n] >= ENOUGH}
    perhaps = {n for n in range(len(said)) if PERHAPS <= found[n] < ENOUGH and _orders(said[n])}
    groups = [(rules, most), (perhaps, most_perhaps)]
    kept = {n for group, room in groups for n in sorted(group, key=lambda n: (-found[n], n))[:room]}
    return [(said[n], n in rules) for n in sorted(kept)]


def outright(said: Sequence[Sentence]) -> list[Sentence]:
    """The sentences of a short message that say themselves, or of which it is said, that they hold for good."""
    standing = _standing(said)
    found = []
    for sentence, is_standing, weighs in zip(said, standing, _weights(said, standing), strict=True):
        known = signs(sentence.text, standing=is_standing) or [] if weighs >= SURE else []
        if (is_standing or "ever" in known) and _FOR_ONCE.isdisjoint(known) and _OF_RULES.intersection(known):
            found.append(sentence)
    return found


def parts(said: Sequence[Sentence]) -> list[Sentence]:
    """The sentences, and in the place of a long one what stands between its semicolons: several rules in a row."""
    cut = ((s, s.text.split("; ") if len(s.text.split()) > _LONG else [s.text]) for s in said)
    return [replace(sentence, text=text.strip()) for sentence, texts in cut for text in texts if text.strip()]


def _orders(sentence: Sentence) -> bool:
    """Whether a sentence orders something, and not for this once or if it came to that."""
    found = signs(sentence.text) or []
    return not _OF_ORDERS.isdisjoint(found) and _FOR_ONCE.isdisjoint(found)


def weights(said: Sequence[Sentence]) -> list[float]:
    """How much each sentence of a long message lays down for all work: by what it says, by the part in which it stands,
    and by the sentences beside it, since rules stand together.
    """
    return _weights(said, _standing(said))


def _weights(said: Sequence[Sentence], standing: Sequence[bool]) -> list[float]:
    alone = [
        weight(s.text, item=s.kind == "item", standing=standing[n]) if s.kind != "heading" else _NOTHING
        for n, s in enumerate(said)
    ]
    found = []
    for place, sentence in enumerate(said):
        near = [n for n in (place - 2, place - 1, place + 1, place + 2) if 0 <= n < len(said)]
        beside = any(alone[n] >= ENOUGH and _together(sentence, said[n]) for n in near)
        found.append(alone[place] + _WEIGHTS["beside a rule"] * beside)
    return found


def _together(one: Sentence, other: Sentence) -> bool:
    """Whether two sentences stand in one paragraph, or in items one below the other."""
    items = one.kind == other.kind == "item" and abs(one.paragraph - other.paragraph) == 1
    return one.paragraph == other.paragraph or items


def _standing(said: Sequence[Sentence]) -> list[bool]:
    """For each sentence, whether it stands in a part about how to work: below such a heading, behind a sentence that
    leads over to it, up to the end of the paragraph or of the list below, or before a sentence that says so of it.
    """
    standing = [False] * len(said)
    headed = led = False
    for place, sentence in enumerate(said):
        if sentence.kind == "heading":
            headed, led = _leads(sentence.text) and not _TELLS_STORY(sentence.text), False
            continue
        before = said[place - 1] if place else None
        begins = before is None or before.paragraph != sentence.paragraph
        if begins and before is not None:
            in_list = sentence.kind == "item" and (before.kind == "item" or _leads(before.text))
            led = led and (in_list or (before.kind == "text" and before.text.endswith(":")))
        opened, colon, rest = sentence.text.partition(": ")
        standing[place] = (
            headed
            or led
            or _says_of_itself(sentence.text)
            or bool(colon and len(rest.split()) >= _LEAST and _leads(opened))
        )
        if _LOOKS_BACK(sentence.text) and not _EXCEPTS(sentence.text):
            _mark_before(said, place, standing)
        if sentence.kind == "text" and _leads(sentence.text):
            led = True
    return standing


def _mark_before(said: Sequence[Sentence], place: int, standing: list[bool]) -> None:
    """Mark what "that goes for all work" speaks of: the sentences before it in its paragraph."""
    for before in range(place):
        standing[before] |= said[before].paragraph == said[place].paragraph


def _says_of_itself(text: str) -> bool:
    """Whether a sentence ends by saying that it holds for all work: "write it down, that goes for every session"."""
    found = [match.start() for match in _LEADS.finditer(text)]
    return (
        bool(found) and len(text[: found[-1]].split()) >= _FEW // 2 and text.rfind(",", 0, found[-1]) > len(text) // 3
    )


@lru_cache(maxsize=4_096)
def _leads(text: str) -> bool:
    """Whether a sentence introduces how to work."""
    text = unquoted(text)
    return _LEADS(text) and not (_EXCEPTS(text) or "…" in text or is_question(text))


def weight(text: str, *, item: bool = False, standing: bool = False) -> float:
    """How much a sentence lays down for all work: as much as the heaviest of its clauses, since a reason or a story may
    follow a rule or lead to it. `standing`: it stands in a part about how to work.
    """
    found = signs(text, item=item, standing=standing)
    return sum(_WEIGHTS[sign] for sign in found) if found is not None else _NOTHING


def signs(text: str, *, item: bool = False, standing: bool = False) -> list[str] | None:
    """What speaks for and against a sentence, of its heaviest clause; None for one that lays nothing down."""
    said, text = text, _ASIDE.sub("", unquoted(text))
    if len(text.split()) < _LEAST or is_question(text) or text.endswith(":"):
        return None
    whole = {
        "any": True,
        "quotes": text.count("…") > said.count("…"),
        "looks back": _LOOKS_BACK(text),
        "in a part about work": standing,
        "item": item,
        "once": _ONCE(text) and not _NOT_ONCE(text),
        "if ever": _IF_EVER(text),
    }
    clauses = [text, *(clause for clause in _CLAUSES.split(text) if len(clause.split()) >= _LEAST)]
    heaviest = max(map(_signs_of, clauses), key=lambda found: sum(_WEIGHTS[sign] for sign in found))
    return [*(sign for sign, speaks in whole.items() if speaks), *heaviest]


@lru_cache(maxsize=4_096)  # the same sentence is asked about three times
def _signs_of(clause: str) -> tuple[str, ...]:
    clause = _DESCRIBES.sub("", clause.strip())
    words = len(clause.split())
    found = [sign for sign, is_in in _SIGNS.items() if words <= _MOST and is_in(clause)]
    found += ["short"] if words <= _FEW else []
    found += ["this one"] if words <= _FEW and _THIS_ONE(clause) else []
    found += ["tells a rule"] if "tells" in found and ("ever" in found or "forbids" in found) else []
    return tuple(found)
