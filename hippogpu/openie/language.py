"""Which language a text seems to be in: its script by Unicode ranges, and for Latin script its function words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

# A look at this much of a text is enough; a table of names or a line of verse among more prose does not decide.
_CHARACTERS_READ = 6000
# Fewer letters, a symbol or an abbreviation, say nothing. Six of a script are a word, or in Chinese a sentence.
_MIN_LETTERS = 6
_MIN_WORDS = 8
# Prose of every language here has more function words than this; English with foreign names in it has fewer foreign
# ones, and more of its own.
_FUNCTION_WORD_SHARE = 0.16
_MIN_FUNCTION_WORDS = 4
_MIN_DISTINCT = 3
_TIMES_ITS_OWN = 3
_SCRIPT_SHARE = 0.5
# A Japanese text has a good part of kana, a Chinese one that quotes a Japanese name a few.
_KANA_SHARE = 0.1

_SCRIPTS: Mapping[str, str] = MappingProxyType(
    {
        "Latin": "A-Za-zªºÀ-ÖØ-öø-ʯḀ-ỿＡ-Ｚａ-ｚ",
        "Greek": "Ͱ-Ͽἀ-῿",
        "Cyrillic": "Ѐ-ԯᲀ-ᲈ",
        "Armenian": "Ա-֏",
        "Hebrew": "א-ת",
        "Arabic": "ؠ-يٮ-ۓەۺ-ۿݐ-ݿࢠ-ࢴﭐ-﷿ﹰ-ﻼ",
        "Devanagari": "ऀ-ॣॱ-ॿ",
        "Bengali": "ঀ-৥ৰৱ",
        "Gurmukhi": "ਁ-ੑਖ਼-ੵ",
        "Gujarati": "ઁ-ૣ",
        "Tamil": "ஂ-ௗ",
        "Telugu": "ఀ-ౣ",
        "Kannada": "ಀ-ೣ",
        "Malayalam": "ഀ-ൣ",
        "Sinhala": "ඁ-ෟ",
        "Thai": "ก-ๅ็-๎",
        "Lao": "ກ-ໄ",
        "Tibetan": "ཀ-ྼ",
        "Burmese": "က-ဿ",
        "Georgian": "Ⴀ-ჿ",
        "Ethiopic": "ሀ-ፚ",
        "Khmer": "ក-៓",
        "Hangul": "ᄀ-ᇿㄱ-ㆎ가-힣",
        "Kana": "ぁ-ゟァ-ヺー-ヿｦ-ﾝ",
        "Han": "㐀-䶿一-鿿豈-﫿𠀀-𯿿",
    }
)
_RUNS = MappingProxyType({script: re.compile(f"[{ranges}]") for script, ranges in _SCRIPTS.items()})
# Scripts that put no space between words: a tokeniser for spaced languages takes a whole clause for one word.
_UNSPACED = frozenset({"Han", "Kana", "Thai", "Lao", "Tibetan", "Burmese", "Khmer"})

_WRITTEN_IN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(("be", "bg", "kk", "ky", "mk", "mn", "ru", "tt", "uk"), frozenset({"Cyrillic"})),
        **dict.fromkeys(("hi", "mr", "ne", "sa"), frozenset({"Devanagari"})),
        **dict.fromkeys(("ar", "fa", "ur"), frozenset({"Arabic"})),
        **dict.fromkeys(("el", "grc"), frozenset({"Greek"})),
        **dict.fromkeys(("am", "ti"), frozenset({"Ethiopic"})),
        **dict.fromkeys(("he", "yi"), frozenset({"Hebrew"})),
        "sr": frozenset({"Cyrillic", "Latin"}),
        "bn": frozenset({"Bengali"}),
        "bo": frozenset({"Tibetan"}),
        "gu": frozenset({"Gujarati"}),
        "hy": frozenset({"Armenian"}),
        "ja": frozenset({"Kana", "Han"}),
        "ka": frozenset({"Georgian"}),
        "km": frozenset({"Khmer"}),
        "kn": frozenset({"Kannada"}),
        "ko": frozenset({"Hangul", "Han"}),
        "lo": frozenset({"Lao"}),
        "ml": frozenset({"Malayalam"}),
        "my": frozenset({"Burmese"}),
        "pa": frozenset({"Gurmukhi"}),
        "si": frozenset({"Sinhala"}),
        "ta": frozenset({"Tamil"}),
        "te": frozenset({"Telugu"}),
        "th": frozenset({"Thai"}),
        "zh": frozenset({"Han"}),
    }
)
_LATIN = frozenset({"Latin"})
# What a text in a script that one language (nearly) owns is called; else it is named by its script.
_OWNERS = MappingProxyType(
    {
        **{"Han": "Chinese", "Kana": "Japanese", "Hangul": "Korean", "Greek": "Greek", "Thai": "Thai", "Lao": "Lao"},
        **{"Armenian": "Armenian", "Georgian": "Georgian", "Tamil": "Tamil", "Telugu": "Telugu", "Khmer": "Khmer"},
        **{"Kannada": "Kannada", "Malayalam": "Malayalam", "Sinhala": "Sinhala", "Gujarati": "Gujarati"},
        **{"Burmese": "Burmese", "Tibetan": "Tibetan", "Gurmukhi": "Punjabi"},
    }
)

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        **{"ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German"},
        **{"el": "Greek", "en": "English", "es": "Spanish", "fa": "Persian", "fi": "Finnish", "fr": "French"},
        **{"he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "it": "Italian", "ja": "Japanese"},
        **{"ko": "Korean", "lt": "Lithuanian", "mk": "Macedonian", "nb": "Norwegian", "nl": "Dutch", "pl": "Polish"},
        **{"pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sl": "Slovenian", "sv": "Swedish", "th": "Thai"},
        **{"la": "Latin", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese"},
    }
)

_FUNCTION_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        language: frozenset(words.split())
        for language, words in {
            "en": "the of and to in is was for that with as his on by it at from are this which be he or were an not "
            "their has have had but its they been who also one after when into than she her can there about between "
            "during other would a all may if any most them these no so such upon being some we you i what where how",
            "de": "der die das und ist von den des dem ein eine einer eines einem einen im zu mit auf für als auch "
            "sich an nach bei wurde war wird sind es er sie nicht aus am zum zur durch über oder bis vor seine seiner "
            "ihre um aber sowie wurden hat unter zwischen werden dass in seit heute nach später wo noch nur",
            "fr": "le la les de des du et est un une en dans par pour que qui au aux il elle sur avec son sa ses ce "
            "cette pas plus se sont été à ne ou où leur comme entre ou était ont après aussi l d qu",
            "es": "el la los las de del y en que es un una por con para se su sus al lo como fue no más o entre desde "
            "está son era sobre también a pero este esta hasta durante fueron ha",
            "it": "il lo la i gli le di del della dei delle degli nel nella e è un una in che per con si da dal dalla "
            "al alla sono come non anche più fu suo sua tra era ha ma o sul dell l",
            "pt": "o a os as de do da dos das e em no na nos nas um uma que é por com para se foi ao à como mais seu "
            "sua não entre também ou são pelo pela era até",
            "nl": "de het een en van in is op te met voor zijn was door aan als dat die bij ook naar er uit om tot "
            "werd hij niet over wordt deze heeft of ze maar onder tussen",
            "ca": "el la els les de del dels i en que és un una per amb al als va ser es seva seu com més no o entre "
            "també són aquest aquesta des fins d l",
            "ro": "și de la în a al ale cu pe este un o din care pentru că se mai fost sau sunt lui ei prin după ca nu",
            "sv": "och i att det som en är på av för med den till har de ett om var från vid han hon inte eller sig "
            "under efter men blev också",
            "da": "og i at det som en er på af for med den til har de et om var fra ved han hun ikke eller sig under "
            "efter men blev også blandt",
            "nb": "og i at det som en er på av for med den til har de et om var fra ved han hun ikke eller seg under "
            "etter men ble også ei",
            "fi": "ja on oli että se joka sekä ei hän ovat kuin myös mutta tai sen sitä vuonna jonka mukaan jossa "
            "kanssa olivat ennen jälkeen",
            "pl": "i w z na się do jest nie że o od po przez jako oraz za dla był była to jego jej są które który "
            "która we ze roku także",
            "cs": "a v se na je z do s o k že byl byla bylo jako jsou který která které po pro od ve ze za jeho nebo "
            "také při roce však",
            "hu": "a az és egy hogy volt nem is van meg ez mint már csak el azonban vagy után között szerint által "
            "amely ki még egyik így lett ahol",
            "tr": "ve bir bu için ile de da olarak olan en çok daha gibi kadar sonra ise tarafından olduğu ya ancak "
            "yer veya göre",
            "vi": "và của là các một những được trong có cho với không người này đã từ khi năm đến ở như",
            "la": "et in est ad non ut cum quod qui sed ex ab si sunt de per quae esse aut nec atque enim hoc autem",
        }.items()
    }
)
_WORD = re.compile(r"[^\W\d_]+")
_LETTER = re.compile(r"[^\W\d_]")


def _languages_by_word() -> dict[str, tuple[str, ...]]:
    words = frozenset().union(*_FUNCTION_WORDS.values())
    return {word: tuple(code for code, known in _FUNCTION_WORDS.items() if word in known) for word in words}


# Before a capital these are parts of names, which stand in texts of any language.
_OF_NAMES = re.compile("d|da|das|de|del|della|der|di|do|dos|du|e|el|i|la|las|le|les|los|van|von|y|zu")
_LANGUAGES_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(_languages_by_word())


def language_name(code: str) -> str:
    """The English name of a language by its two-letter code; "the language 'xy'" for one that has none here."""
    return _NAMES.get(code, f"the language '{code}'")


def foreign_language(text: str, language: str) -> str | None:
    """The language a text seems to be in, named in English, when it is not the one given; None when it may well be.

    language : two-letter code, or "xx" for a model of several languages that put spaces between words
    Decided by the share of letters in the scripts of that language, then for Latin script by counts of function words.
    A text of few words, of names alone, or in a language without a list here is undecided, thus None. A language known
    by its script alone reads "a language in Cyrillic script".
    """
    head = text[:_CHARACTERS_READ]
    total = len(_LETTER.findall(head))
    if total < _MIN_LETTERS:
        return None
    strange = _foreign_script(head, total, language)
    if strange is not None:
        return strange
    if language not in _FUNCTION_WORDS:
        return None
    return _foreign_words(head, language)


def _foreign_script(text: str, total: int, language: str) -> str | None:
    """The language that a script other than the given language's stands for; total is the number of letters."""
    own = frozenset(_SCRIPTS) - _UNSPACED if language == "xx" else _WRITTEN_IN.get(language, _LATIN)
    if (
        language not in ("zh", "ja")
        and sum(len(_RUNS[script].findall(text)) for script in own) >= _SCRIPT_SHARE * total
    ):
        return None
    letters = {script: len(run.findall(text)) for script, run in _RUNS.items()}
    most = max(letters, key=lambda script: letters[script])
    if most == "Han" and letters["Kana"] >= _KANA_SHARE * total:
        most = "Kana"
    if most == "Han" and language == "ja":
        return "Chinese"
    return None if most in own else _OWNERS.get(most, f"a language in {most} script")


def _foreign_words(text: str, language: str) -> str | None:
    """The Latin-script language whose function words a text has, when it lacks those of the given language.

    Words with a capital are names or headings, and so are particles before them.
    """
    words = _WORD.findall(text)
    if len(words) < _MIN_WORDS:
        return None
    foreign, own = Counter[str](), Counter[str]()
    ours = 0
    for word, following in zip(words, [*words[1:], ""], strict=True):
        known = _LANGUAGES_OF.get(word)
        if known is None or (following[:1].isupper() and _OF_NAMES.fullmatch(word)):
            continue
        ours += language in known
        (own if language in known else foreign).update(known)
    distinct, best = max((count, code) for code, count in (foreign or Counter(en=0)).items())
    # A word that both languages have does not tell them apart, but shows that the text is prose of either.
    if distinct < max(_MIN_DISTINCT, _TIMES_ITS_OWN * (ours - own[best])):
        return None
    enough = max(_MIN_FUNCTION_WORDS, _FUNCTION_WORD_SHARE * len(words))
    return language_name(best) if distinct + own[best] >= enough else None
