"""What people say around a paste, and how pasted pages and letters begin and end, in five languages."""

from __future__ import annotations

import re

from ralf.text.matcher import AnyOf
from ralf.text.patterns import regex

SOURCES = (
    r"(?:e-?mails?|mails?|messages?|letters?|memos?|minutes|meeting|transcripts?|threads?|chats?|conversations?"
    r"|slack|teams|irc"
    r"|discord|posts?|blogs?|articles?|tweets?|(?:web)?pages?|web ?sites?|sites?|wiki|confluence|jira|stories"
    r"|story|readmes?"
    r"|docs?|documents?|documentation|manuals?|guides?|handbooks?|specs?|specifications?|rfcs?|standards?"
    r"|polic(?:y|ies)|terms"
    r"|contracts?|briefs?|press releases?|release notes|changelogs?|logs?|outputs?|traces?|tracebacks?|dumps?"
    r"|console|stdout"
    r"|stderr|issues?|tickets?|reviews?|comments?|reports?|bug reports?|alerts?|notices?|notifications?|answers?"
    r"|repl(?:y|ies)"
    r"|quotes?|excerpts?|snippets?|passages?|texts?|files?|configs?|prompts?|system prompts?|agents\.md"
    r"|claude\.md|runbooks?"
    r"|news ?letters?|tutorials?|forum|stack ?overflow|reddit|tracker|mailing list|survey|feedback|abstract"
    r"|paper|notes?"
    r"|nachricht(?:en)?|schreiben|brief|protokoll|mitschrift|verlauf|seite|artikel|beitrag|dokument|handbuch|ausgabe"
    r"|meldung|fehlermeldung|hinweis(?:e)?|richtlinie|vertrag|bericht|courriel|compte[- ]rendu|procès-verbal|fil"
    r"|discussion"
    r"|mitteilung|rundmail|aushang|merkblatt|anleitung|vorgaben?|kommentare?|antwort|mailverlauf|mémo|annonce|charte"
    r"|cahier des charges|commentaires?|réponse|comunicado|comentarios?|normativa|reglamento|circular|aviso"
    r"|istruzioni|messaggio"
    r"|wish ?list|checklist|cheat ?sheet|slides?|whiteboard|faq|letter|statement|bulletin|manifesto|template"
    r"|questionnaire|(?:job )?ads?|adverts?|postings?|listings?|announcements?|leaflets?|flyers?|brochures?"
    r"|speech|script|lyrics"
    r"|typos?|spelling|grammar|translation|proofreading|blurb|bio|tip|todos?|to-?do list|slide deck|syllabus"
    r"|exercise|assignment"
    r"|abstract|poem|recipe|horoscope"
    r"|notice|règlement|correo|mensaje|hilo|página|artículo|documento|registro|salida|acta|informe|respuesta"
    r"|politique)"
)

ANNOUNCEMENT = 45  # words of a paragraph that announces a paste without a colon

HERE = (
    r"(?:below|here|following|underneath|hier|unten|folgende\w*|ci-dessous|voici|aquí|abajo|siguiente\w*|qui sotto"
    r"|seguente)"
)

COPIED = AnyOf(
    r"\b(?:i (?:could |can )?cop(?:y|ied)|copied|copy of|copy[- ]?(?:and[- ]?)?paste\w*|pasted?|pasting"
    r"|cut and paste|forward(?:ed|ing)|fwd|exported"
    r"|saved from|quot(?:ed|ing)"
    r"|weitergeleitet|kopiert|eingefügt|copié\w*|collé\w*|transféré\w*|reenvi\w+|copiad\w+|pegad\w+|inoltrat\w+"
    r"|incollat\w+"
    r"|below|ci-dessous|a continuación)\b",
)

HANDED_IN = AnyOf(
    rf"\b(?:past(?:ed?|ing)|cop(?:y|ied|ying)|forward(?:ed|ing)?|quot(?:ed|ing)|attach(?:ed"
    rf"|ing))\b[^.!?\n]{{0,60}}\b{HERE}\b"
    rf"|\b(?:below|following)\b[^.!?\n]{{0,20}}\b{SOURCES}\b|\b{SOURCES}\b[^.!?\n]{{0,30}}\b(?:(?:is|are"
    rf"|pasted|copied) )?below\b",
)

I_SAID = AnyOf(
    r"\bi(?:['\u2019]ve| have|['\u2019]d| had)? (?:\w+ )?(?:said|told|wrote|asked|sent|posted|noted|written)\b"
)

PASTES_NOTHING = AnyOf(r"\b(?:past(?:e|ed|ing)|cop(?:y|ied|ying)|forward(?:ed|ing)?) (?:no|nothing|none|not)\b")

FILES = AnyOf(r"(?:the )?(?:files|dateien|fichiers|archivos|bestanden)(?: \w+){0,3}:\Z")
"""What leads to a list of paths, and to nobody's words."""

OWN_LIST = AnyOf(
    r"\b(?:my|our|your|these|house|ground|general|standing|working|team|code|coding) (?:\w+ ){0,2}(?:rules?"
    r"|conventions?|guidelines?"
    r"|principles?|requirements?|constraints?|wishes|preferences?|standards?)\b",
)

TELLS = AnyOf(
    r"\b(?:says?|said|wrote|writes|written|sent|sends?|told|tells|printed|prints|posted|reported|answered"
    r"|replied|states?|stated|wants|asks|asked|demands|requires|recommends?|recommended|claims?|suggests?"
    r"|suggested|insists|replies"
    r"|responds?|responded|commented|announced|noted|shared|left (?:a|this|these)|came back with|meint|verlangt"
    r"|fordert|antwortet(?:e)?"
    r"|empfiehlt|veut|demande|exige|répond(?:u)?|recommande|pide|responde|recomienda|chiede|risponde"
    r"|reads?|gave (?:me|us)|got (?:this|these|it) from|got from|found (?:this|these)|schrieb|schreibt|sagte"
    r"|geschrieben|stand"
    r"|a écrit|écrit|dit|m'a envoyé|escribió|escrito|dijo|dice|ha scritto)\b",
)

OTHERS = regex(
    r"\b(?:their|his|her|theirs|someone|somebody|(?:an)?other (?:team|model|agent|repo|project|person|company)"
    r"|colleagues?|coworkers?"
    r"|clients?|customers?|vendors?|suppliers?|contractors?|providers?|boss|manager|lead|cto|ceo|teacher"
    r"|professor|supervisor|landlord"
    r"|lawyers?|reviewers?|maintainers?|upstream|auditors?|legal|hr|marketing|support|it department|security"
    r"|competitors?|friend|intern"
    r"|predecessor|kolleg\w+|chefin?|kunde\w*|lieferant\w*|vermieter\w*|collègues?|clients?|chef|patron"
    r"|fournisseur|jefe|jefa|cliente"
    r"|proveedor|compañer[oa])\b|\b[A-Z]\w+'s\b"
)
"""Whose text it may be, other than the person's own or their project's."""

THIS = AnyOf(r"\b(?:this|these|here|dies\w*|das hier|ceci|ça|esto|questo)\s*:\Z")

LIKE_THIS = AnyOf(
    r"\b(?:like|do|does|so|be|want|need|way|als|comme|así|come) (?:\w+ )?(?:this|these|here|dies|ceci|ça|esto)\s*:\Z",
)

REPORTS = AnyOf(
    r"(?:[^:\n]{0,400}[.!?] )?(?!(?:i|we) )[^.!?:]{0,100}\b(?:says?|said|wrote|writes|sent (?:me|us)?"
    r"|told (?:me|us|them)|posted|replied|answered|asks|asked|commented|claims|insists|announced|recommends"
    r"|suggests|reads|schrieb|schreibt|sagte?|meinte?|a écrit|écrit|dit|répond|escribió|escribe|dijo|dice|responde"
    r"|ha scritto)\b[^.!?:]{0,40}: (?=\S)",
)

TAKEN_FROM = AnyOf(r"\W{0,9}(?:from|out of|aus|auszug|extrait|tiré|extracto|sacado|excerpt)\b[^.!?:\n]{2,60}: (?=\S)")
"""A line that begins with where the rest of it is from: "From the lease: pets are forbidden"."""

LOOKS_BACK = AnyOf(
    r"\W{0,9}(?:so |and |ok,? )?(?:that(?:['\u2019]s| is| was)|this was|these were"
    r"|those (?:are|were)"
    r"|(?:the|all) (?:of )?(?:that|above)"
    r"|above (?:is|are)|so (?:says|said)|das (?:ist|war|stand|steht|kam)|c['\u2019](?:est|était)|voilà|eso (?:es"
    r"|era|dice)|esto es"
    r"|questo è)\b",
)

WHAT_THEY = AnyOf(
    r"\b(?:what|how|das|was|ce que|lo que) (?:they|he|she|people|somebody|someone|sie|er|ils?|elle|ell[oa]s)\b"
)

GREETING = AnyOf(
    r"\s{0,99}+(?:hi|hello|hey|dear|hallo|liebe[rs]?|sehr geehrte[rs]?|guten (?:tag|morgen|abend)|moin|servus|bonjour"
    r"|salut|chers?|chères?"
    r"|madame|monsieur|hola|estimad[oa]s?|querid[oa]s?|buen[oa]s|ciao|gentile|cari|to whom|good (?:morning"
    r"|afternoon|evening))"
    r"\b[^.!?\n]{0,40}[,!: ]{0,4}\Z",
)

PAGE = AnyOf(
    r"\s{0,99}+(?:\u00a9|copyright\b|all rights reserved|share (?:this|on)|home \||posted (?:by|on|in)\b|published\b"
    r"|last (?:updated|modified)\b"
    r"|table of contents|\d{1,4} min(?:ute)?s? read|(?:answered|asked|edited|created|authored) (?:by\b|on\b"
    r"|\w{3} \d)|sign up|subscribe\b"
    r"|acceptance criteria\b)",
)
"""A line that stands on a page, not in a message: a footer, a menu, the line below a title."""

WIKI = regex(r"h[1-6]\. \S|\{(?:quote|code|noformat|panel)\b[^}\n]{0,60}\}|={2,5} ?[^=\n]{1,80} ?={2,5}\Z")
"""A line of a ticket's or a wiki's own markup."""

HANDLES = AnyOf(
    r"\b(?:summari[sz]e|sum up|tl;?dr|translate|proofread|rewrite|rephrase|reword|convert|extract|parse|explain"
    r"|analy[sz]e|review"
    r"|classify|compare|critique|rank|correct|format|transcribe|reply to|respond to|answer|zusammenfass\w*"
    r"|fass\w*|übersetz\w*"
    r"|résum\w+|tradui\w+|resum\w+|traduc\w+|riassum\w+)\b[^.!?\n]{0,60}\b(?:this|these|that|the|following|below"
    r"|dies\w*|das|den|die"
    r"|ce|cet|cette|ces|le|la|les|est[ae]s?|el|los|las|quest\w)\b",
)

POINTED_AT = AnyOf(
    r"\b(?:summari[sz]e|sum up|tl;?dr|translate|proofread|rewrite|rephrase|convert|extract|explain|analy[sz]e"
    r"|review|classify"
    r"|critique|correct|reply to|respond to|answer|think of|make of|right|true|find\w*|found|got|received"
    r"|zusammenfass\w*|fass\w*"
    r"|übersetz\w*|résum\w+|tradui\w+|resum\w+|traduc\w+|riassum\w+)\b[^.!?\n]{0,30}"
    rf"\b(?:this|these|dies\w+|ce|cet|cette|ces|est[aeo]s?|quest\w)\b(?: \w+){{0,3}} (?:{SOURCES})\b",
)

SOURCE = AnyOf(rf"\b{SOURCES}\b")

DEIXIS = (
    r"(?:this|these|that|those|it|them|dies\w*|das hier|ihn|daraus|davon|ce|cet|cette|ces|ça|cela|celui-ci|lui|y|en"
    r"|est[aeo]s?|es[aeo]s?|ello|quest\w|ciò)"
)

ABOUT_A_TEXT = AnyOf(
    r"\b(?:summari[sz]e|sum up|tl;?dr|translate|proofread|rewrite|rephrase|reword|convert|transcribe|paraphrase"
    r"|reformat"
    r"|shorten|critique|fact-?check|reply to|respond to|zusammenfass\w*|fass\w*|übersetz\w*|formulier\w*"
    r"|résum\w+|tradui\w+"
    r"|reformul\w+|resum\w+|tradu\w+|convierte\w*|riassum\w+)\b[^.!?\n]{0,30}\b" + DEIXIS + r"\b"
    r"|\b(?:turn|put|bring|make) " + DEIXIS + r"\b[^.!?\n]{0,40}\b(?:in|into)\b"
    r"|\b(?:out of|aus|à partir de|a partir de) (?:" + DEIXIS + r"|the above)\b"
    r"|\b(?:which|any|some|how (?:many|much)|most|all|each|one) (?:\w+ )?of (?:these|those|them|this|that|it)\b"
    rf"|\b(?:these|those|this|that|dies\w+|jene|ces|cette|est[ao]s|es[ao]s) (?:\w+ ){{0,2}}{SOURCES}\b"
    r"|\b(?:anything|something|nothing|any|all|some|which|what|much) (?:in )?(?:here|there|above|below)\b"
    r"|\b(?:these|those|them)\s*\?"
    r"|\b(?:review|check|read|go through|sort|order|answer|reply|response) (?:to )?(?:this|these|those)\b"
    r"|\b(?:with|to|from|of|than|about|by) (?:that|these|those)\W{0,3}\Z",
)
"""Somebody asks about a text that stands beside: "turn those minutes into …", "which of these …", "out of it"."""

SPEAKS = regex(
    r"(?<![\w'])(?:I|I['\u2019][a-z]+|i['\u2019]m|im (?=not|so|a|on|in|the|[a-z]{2,12}ing)\b"
    r"|i['\u2019]d|i (?:think|want|need|would|have)|[Ii]ch|[Jj]e"
    r"|j['\u2019]\w+"
    r"|[Yy]o)(?![\w/.])"
)
"""A person speaks of themselves."""

OWN_VOICE = regex(
    SPEAKS.pattern
    + r"|\b(?:[Mm]e|[Mm]y|[Mm]ine|[Mm]ir|[Mm]ich|[Mm]ein\w*|[Mm]oi|[Mm]on|[Mm]es|[Mm]is?|[Mm]ij|[Mm]ijn)\b"
)
"""A person speaks of themselves, or of what is theirs."""

OF_SOMEBODY = AnyOf(
    r"\b(?:he|she|they|him|them|his|her|their|theirs|er|sie|ihm|ihr\w*|ils?|elles?|leur|él|ell[oa]s?|zij|hij|hun)\b",
)

GREETS_MANY = AnyOf(
    r"\W{0,9}(?:hey|hi|hello|dear|hallo|liebe|moin|bonjour|salut|hola|ciao)\b,? (?:team|all|everyone|everybody|folks"
    r"|guys|both|colleagues|maintainers|customers?|users?|members?|zusammen|alle|kolleg\w+|leute|à tous|tout le monde"
    r"|equipo|a todos|tutti)\b",
)
"""What somebody begins with who writes to several people: no agent is meant."""

SENTENCE = regex(r"[^.!?\n]{12,400}[.!?\n]?")

ORDERS = AnyOf(
    r"\b(?:never|always|must(?:n['\u2019]t)?|don['\u2019]?t|do not|from (?:now|here) on|only|no|every|each|any|please"
    r"|has to|have to|needs? to|should|nothing|nie|niemals|immer|kein\w*|muss|müssen|jamais|toujours|nunca|siempre"
    r"|nooit|altijd)\b",
)

RULE_OR_TWO = 20  # words

OF_US = AnyOf(r"\b(?:we|our|us|my|let['\u2019]?s|wir|unser\w*|mein\w*|nous|notre|mon|nuestr[oa]|mi)\b")

POINTS_AT = AnyOf(
    r"\b(?:would|does|do|did|is|are|was|can|could|should) (?:that|this|these|those|they"
    r"|he|she|any of (?:it|them|this|that|these|those))\b[^.!?\n]{0,80}\?",
)
"""A question about something beside it, or about what the person has said."""

TITLE = AnyOf(
    r"\s{0,99}+(?:#+ )?(?:[^\s.!?:;,][^.!?:;,\n]{0,50} (?:/|·|\||>|»|\u2014|\u2013) [^.!?:;\n]{1,60}"
    r"|(?!(?:step|phase|part|problem|task|stage|option|issue|goal|question|bug|point|punkt|schritt|teil|étape"
    r"|paso|ticket)\b)"
    r"[^\W\d_]{3,16}\.? (?:\d{1,3}|[IVX]{1,4})(?:[.:].*)?)\Z",
)
"""The first line of a page or of a numbered part: "Handbook / Code review", "Exercise 4", "Section 12. Duties …"."""

ASKS_ME = regex(
    r"\?|^\W{0,9}(?:is|are|does|do|did|which|what|where|who|how|why|can|could|should|would|welche\w*|wo|wie"
    r"|warum) \w|\b(?:me|mir|moi|dime|dinos|dis-moi|ayúdame|dimmi|your (?:opinion|view|take)|for us|please|bitte"
    r"|schau|prüf"
    r"|s'il te plaît|por favor|would you|can you|could you|kannst du|peux-tu|puedes)\b"
    r"|^\W{0,9}(?:now |then |so |ok,? |and )?(?:find|check|look|list|count|show|tell|fix|write|make|compare|run|grep"
    r"|search|test"
    r"|help|give|see|explain|label|address|add|point)\b",
    re.I | re.M,
)

ASKED_ABOUT = 80  # words of a paragraph that asks about a text

SIGNED = AnyOf(
    r"\s{0,99}+(?:(?:kind|best|warm|many|with)? ?(?:regards|wishes|greetings)|cheers|sincerely|yours\b|best(?=,)"
    r"|all the best|take care"
    r"|respectfully|mit (?:freundlichen|besten|vielen|lieben) grüßen|(?:viele|beste|liebe|schöne|herzliche) grüße"
    r"|freundliche grüße|lg\b|vg\b|mfg\b|cordialement|bien (?:à|cordialement)|salutations|sincères"
    r"|meilleures salutations"
    r"|(?:un )?(?:cordial )?saludos?|atentamente|un abrazo|cordiali saluti|distinti saluti"
    r"|met vriendelijke groet)\b[^.?!:\n]{0,40}[.!, ]{0,4}\Z",
)
"""The line with which a letter ends."""

WORDS_OF = {
    "en": frozenset(
        "the and is are of to in that it for on with you this be not have we do does what our which".split()
    ),
    "de": frozenset(
        "der die das und ist sind nicht ein eine zu mit für auf von wir ich es im bitte auch werden den dem".split()
    ),
    "fr": frozenset(
        "le la les et est sont des du un une pas pour dans que qui nous vous je avec sur au plus ne".split()
    ),
    "es": frozenset("el la los las y es son de del un una no para en que se con por nos le su al lo".split()),
    "it": frozenset("il lo gli e è sono di del della un una non per in che si con da al nel i".split()),
}
"""The commonest words of languages: which of them a paragraph is written in."""

PLAN = "Implement the following plan:"
"""What Claude Code puts before a plan that a person approved, when the plan begins a new session."""
