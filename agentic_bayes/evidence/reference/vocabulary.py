"""The reference judge's vocabulary: units, numbers, negations, and words without content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

Meanings = frozenset[str]


def _table(rows: Mapping[str, Iterable[str]]) -> dict[str, Meanings]:
    """Spelling → meanings; a spelling in several rows ("pounds") may mean any of them."""
    table: dict[str, Meanings] = {}
    for meaning, spellings in rows.items():
        for spelling in spellings:
            table[spelling] = table.get(spelling, frozenset()) | {meaning}
    return table


_DOLLARS = frozenset({"usd", "cad", "aud", "nzd", "sgd", "hkd", "mxn"})

CURRENCY_SYMBOLS: dict[str, Meanings] = {
    "$": _DOLLARS,
    **_table({"eur": "€", "gbp": "£", "jpy": "¥", "cny": "¥", "inr": "₹", "krw": "₩", "rub": "₽"}),
}

# After "degrees" or "°"; a bare degree may be any of these, so it says nothing.
DEGREE_SCALES: dict[str, Meanings] = _table(
    {"celsius": ("c", "celsius", "centigrade"), "fahrenheit": ("f", "fahrenheit")}
)

# meaning: its spellings
_UNIT_SPELLINGS = """
    percent: % percent pct; permille: ‰; eur: eur euro euros; gbp: gbp quid pound pounds; jpy: jpy yen 円
    cny: cny rmb yuan 元; inr: inr rupee rupees; krw: krw 원; chf: chf franc francs; usd: usd; cad: cad; aud: aud
    cents: cent cents; mm: mm millimeter millimeters millimetre millimetres
    cm: cm centimeter centimeters centimetre centimetres; m: m meter meters metre metres
    km: km kilometer kilometers kilometre kilometres; m2: m2 sqm; km2: km2; m3: m3; mile: mi mile miles
    foot: ft foot feet; inch: inch inches; yard: yd yard yards; mg: mg milligram milligrams; g: g gram grams
    kg: kg kgs kilo kilos kilogram kilograms; pound: lb lbs pound pounds; ounce: oz ounce ounces
    tonne: tonne tonnes ton tons; ml: ml milliliter milliliters millilitre millilitres
    l: l liter liters litre litres; gallon: gal gallon gallons; ms: ms millisecond milliseconds
    s: s sec secs second seconds; min: min mins minute minutes; h: h hr hrs hour hours; day: day days
    week: week weeks; month: month months; year: year years yr yrs; am: am a.m; pm: pm p.m
    kb: kb kilobyte kilobytes; mb: mb megabyte megabytes; gb: gb gigabyte gigabytes; tb: tb terabyte terabytes
    kw: kw kilowatt kilowatts; kwh: kwh; watt: w watt watts; km/h: km/h kmh kph; mph: mph
"""
_SPELLINGS = [entry.partition(":") for entry in _UNIT_SPELLINGS.strip().replace("\n", ";").split(";")]
UNITS: dict[str, Meanings] = {
    **_table({unit.strip(): names.split() for unit, _, names in _SPELLINGS}),
    **dict.fromkeys(("dollar", "dollars", "buck", "bucks"), _DOLLARS),
    **DEGREE_SCALES,
    **CURRENCY_SYMBOLS,
}

PER_HOUR = {"mile": "mph", "km": "km/h"}

# unit: what it measures, and how many of the smallest unit it is; only these are converted
_SCALES = (
    ("duration", {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "day": 86_400_000, "week": 604_800_000}),
    ("months", {"month": 1, "year": 12}),
    ("length", {"mm": 1, "cm": 10, "m": 1_000, "km": 1_000_000}),
    ("feet", {"inch": 1, "foot": 12, "yard": 36}),
    ("mass", {"mg": 1, "g": 1_000, "kg": 1_000_000}),
    ("ounces", {"ounce": 1, "pound": 16}),
    ("volume", {"ml": 1, "l": 1_000}),
)
SCALES = {unit: (measure, Fraction(size)) for measure, sizes in _SCALES for unit, size in sizes.items()}

# A query about a share: here a number without a unit may be a percentage.
PERCENTAGES = (
    "%",
    "per ?cent",
    r"\bshares?\b",
    r"\brate",
    "proportion",
    "discount",
    r"\binterest\b",
    "chance",
    "probab",
    r"\btax",
    r"\btips?\b",
)

# Written before a number without a space ("USD36").
UNIT_PREFIXES = ("usd", "eur", "gbp", "jpy", "cny", "inr", "chf", "cad", "aud")

POWERS_OF_TEN = {"hundred": 2, "k": 3, "thousand": 3, "mn": 6, "million": 6, "bn": 9, "billion": 9, "trillion": 12}
# only next to a currency: "2m" alone may be metres
MONEY_POWERS = {"m": 6, "b": 9}


def _words(*lines: str) -> tuple[str, ...]:
    return tuple(word for line in lines for word in line.split())


def _set_of(*lines: str) -> frozenset[str]:
    return frozenset(_words(*lines))


TENS = {
    word: 10 * value
    for value, word in enumerate(_words("twenty thirty forty fifty sixty seventy eighty ninety"), start=2)
}

_BELOW_TWENTY = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen",
    "fifteen sixteen seventeen eighteen nineteen",
)
NUMBER_WORDS = {word: value for value, word in enumerate(_BELOW_TWENTY)}
FRACTIONS = {
    "half": 2,
    "third": 3,
    "thirds": 3,
    "sixth": 6,
    "tenth": 10,
    "quarter": 4,
    "quarters": 4,
    "fifth": 5,
    "fifths": 5,
    "eighth": 8,
    "eighths": 8,
    "tenths": 10,
}
# Read as numbers only where the reference has numbers like these.
ORDINALS = {
    word: str(value)
    for value, word in enumerate(
        _words("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"), start=1
    )
} | {"once": "1"}
FRACTION_WORDS = {"half": "0.5", "quarter": "0.25", "third": "1/3"}
_NUMBERS_ELSEWHERE = (
    "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn",
    "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze",
    "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince",
    "due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici",
    "dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze",
    "twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien",
)
_ALSO_ENGLISH = {"once", "six", "due", "sept"}
FOREIGN_NUMBERS = {
    word: str(value)
    for names in _NUMBERS_ELSEWHERE
    for value, word in enumerate(names.split(), start=2)
    if word not in _ALSO_ENGLISH
} | {"twice": "2", "thrice": "3"}
NUMERALS = frozenset({*NUMBER_WORDS, *TENS, "and", *(word for word in POWERS_OF_TEN if len(word) > 2)})

NEGATIONS = _set_of(
    "not no never neither nor without non instead except",
    "nicht kein keine pas não nunca jamais non niet geen inte ikke nie не нет weder",
)
NEGATING_CHARACTERS = frozenset("不没沒未非无無")
LINKING_CHARACTERS = frozenset("是为為在")

_MONTH_NAMES = _words("january february march april may june july august september october november december")
# as stems: "mars" is "mar"
_MONTHS_ELSEWHERE = (
    "januar februar märz april mai juni juli august september oktober november dezember",
    "janvier février mar avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
)
MONTHS = {
    spelling: number
    for number, name in enumerate(_MONTH_NAMES, start=1)
    for spelling in (name, name[:3], *(["sept"] if number == 9 else []))
}
FOREIGN_MONTHS = {
    name: number for names in _MONTHS_ELSEWHERE for number, name in enumerate(names.split(), 1) if name not in MONTHS
}

# They may stand between a negation and what it negates.
LINKING_WORDS = _set_of(
    "a an the to of by in fact be been being is equal exactly currently actually really quite precisely",
    "alway old former previous yet any longer at all necessarily entirely completely strictly",
    "on for from with as my your our this that es est ist ein eine un une è é",
)

# beginnings of words that British and American English spell differently, next to -ise, -yse and -lled
AMERICAN = dict(
    pair.split("/")
    for pair in _words(
        "armour/armor behaviour/behavior colour/color endeavour/endeavor favour/favor flavour/flavor harbour/harbor",
        "honour/honor humour/humor labour/labor neighbour/neighbor odour/odor parlour/parlor rumour/rumor",
        "savour/savor vapour/vapor centre/center fibre/fiber litre/liter metre/meter theatre/theater sabre/saber",
        "grey/gray cheque/check tyre/tire licence/license defence/defense offence/offense pretence/pretense",
        "programme/program catalogue/catalog dialogue/dialog plough/plow jewellery/jewelry aluminium/aluminum",
        "mould/mold sceptic/skeptic storey/story aeroplane/airplane pyjama/pajama moustache/mustache",
    )
)

# After the apostrophe of a contraction; "n't" is read as "not".
CONTRACTION_TAILS = _set_of("s m d ll re ve")
CONTRACTED = {"ca": "can", "wo": "will", "sha": "shall"}

ASSENTS = _set_of("absolutely certainly definitely sure indeed affirmative")
# Only as the first word, and alone in its clause.
FOREIGN_YES = _set_of("ja oui si sim tak da да evet はい 是")
FOREIGN_NO = _set_of("nein non não nie nee нет nej hayır")
POSSIBLY = _set_of("maybe perhaps possibly might")
YES_WORDS = _set_of("yes yeah yep true correct")
NO_WORDS = _set_of("no nope false incorrect")
PRONOUNS = _set_of("i it you we they he she that this there")

# What calls a statement wrong, what may stand between it and the statement, and what stands for the statement.
DENIALS = _set_of("wrong incorrect false untrue mistaken inaccurate erroneous mistake")
APPROVALS = _set_of("right correct true accurate so")  # negated, they call it wrong, too
COPULAS = _set_of("is are was were be been seem sound look")
AUXILIARIES = _set_of("is are was were do doe did can could will would has have had should")
BEFORE_CLAIMS = _set_of("that to")
CONJUNCTIONS = _set_of("and but or so while because although though which who however yet")
POINTERS = _set_of("that this it which these those answer claim statement reference")

SELDOM = _set_of("hardly rarely seldom scarcely barely")
# What says, negated, that a claim is not made ("I don't think it is …"); what doubts or denies the claim that follows.
CLAIMS = _set_of(
    "think believe say know sure certain confirm suppose guess claim assume agree mean call tell",
    "evidence proof reason chance sign indication",
)
DOUBTS = _set_of(
    "doubt deny refute dispute unlikely improbable impossible unclear unknown uncertain unsure doubtful wonder",
    "misconception myth fallacy unlike exclude excluded outdated obsolete nobody none hardly wish",
    "eliminate eliminated reject rejected discard",
)
TURNED_AWAY = {
    "than": _set_of("rather other more fewer less higher lower greater smaller longer shorter later earlier"),
    "but": _set_of("anything anyone anywhere everything everyone everywhere"),
    "from": _set_of("far"),
    "near": _set_of("nowhere"),
    "except": frozenset(),
}
FORMERLY = _set_of("formerly erstwhile")
# "not only Paris", "not until 9:00": the negation is not of what follows
NOT_ONLY = _set_of(
    "only just merely simply until before after later forget miss worry exceed far surprisingly",
)
ANSWERS = _set_of("answer solution case choice option")

# In a query or reference they make a limit the answer, such as "at least 5".
LIMITS = _set_of(
    "least most minimum maximum max min limit over under above below can may must need allow allowed require required",
    "up deadline late latest early earliest before after more less fewer than old start range until by",
)

# What takes back what was said before, what opposes it, and what may stand before the new answer.
CORRECTIONS = _set_of(
    "no nope sorry wait correction oop actually rather instead mean meant kidding excuse strike scratch edit corrected",
    "truth",
)
CONTRASTS = _set_of("but however yet though although whereas while now today currently nowaday other")
LEADS = (
    CORRECTIONS
    | CONTRASTS
    | POINTERS
    | COPULAS
    | _set_of(
        "be the correct right true real actual new one really i me just make should must has to changed of course",
        "or say oh well ah um hmm there my final",
    )
)
TRAILS = _set_of("now today actually instead really currently then is right correct")
# A sentence may begin with these; they are nobody's name.
INTERJECTIONS = _set_of(
    "hello hi hey dear thank great good sure okay ok done understood perfect excellent welcome alright congratulation",
    "certainly absolutely definitely please note summary result let would could here just unfortunately sadly yes no",
    "first finally initially originally previously formerly earlier also another other any some all both each my our",
)
# How others see it, or how it was seen.
REPORTS = _set_of(
    "say said claim claimed think thought believe believed assume assumed guess guessed expect expected seem seemed",
    "look looked suggest suggested suppose supposed might could would first initially originally formerly used",
    "tempting old former obviou obvious misconception many some people often",
)
QUESTIONS = _set_of("is are was do doe did could can would might may should how what")

# As stems: "does" is "doe".
STOP_WORDS = _set_of(
    "a about all also am an and are as at be been being but by can could did do doe for from had has",
    "have he her here him his i if in into is it its just me my no not of on or our she should so than",
    "that the their them then there these they this to too very was we were what when where which who",
    "will with would yes you your",
)

# They say that a call worked, not what it found.
STATUS_WORDS = _set_of("ok okay success successful succeeded done complete completed true false none null error failed")
