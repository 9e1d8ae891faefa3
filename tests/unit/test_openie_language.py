"""Which language a text seems to be in."""

from __future__ import annotations

import pytest

from hippogpu.openie.language import foreign_language, language_name

GERMAN = (
    "Die Elbe ist einer der längsten Flüsse Mitteleuropas und mündet bei Cuxhaven in die Nordsee.",
    "Johannes Kepler war ein Astronom und Mathematiker, der die Gesetze der Planetenbewegung fand.",
    "Das Schloss wurde im 16. Jahrhundert für einen Grafen gebaut und brannte später bis auf die Mauern ab.",
    "Sie studierte in Leipzig Medizin und arbeitete danach als Ärztin an einer Klinik in Dresden.",
    "Der Brocken ist mit 1141 Metern der höchste Berg im Norden des Landes und oft von Nebel umgeben.",
    "Clara Schumann trat schon als Kind vor Publikum auf und wurde zu einer der bekanntesten Pianistinnen ihrer Zeit.",
    "Im Jahr 1889 eröffnete die Gemeinde eine Schule, die bis heute von den Kindern der Dörfer besucht wird.",
    "Der Film erzählt die Geschichte eines Fischers, der nach dem Krieg in sein Dorf zurückkehrt.",
    "Die Bibliothek besitzt über eine Million Bände und ist eine der ältesten des Landes.",
    "Nach seinem Tod wurde das Unternehmen von seiner Tochter geführt, die es zu neuem Erfolg brachte.",
    "Der Verein spielt seit 1996 in der dritten Liga und trägt seine Heimspiele in einem kleinen Stadion aus.",
    "Mainz liegt am Rhein gegenüber der Mündung des Mains und ist die Hauptstadt des Landes Rheinland-Pfalz.",
)
FRENCH = (
    "La Loire est le plus long fleuve de France et se jette dans l'océan Atlantique près de Saint-Nazaire.",
    "Marie Curie est une physicienne et chimiste qui a reçu deux fois le prix Nobel pour ses travaux.",
    "Le château fut construit au seizième siècle pour un comte et a brûlé pendant la guerre.",
    "Elle étudie la médecine à Lyon, puis travaille comme médecin dans un hôpital de Grenoble.",
    "Le film raconte l'histoire d'un pêcheur qui revient dans son village après la guerre.",
    "La bibliothèque possède plus d'un million de volumes et elle est une des plus anciennes du pays.",
    "Après sa mort, l'entreprise est dirigée par sa fille, qui lui apporte un nouveau succès.",
    "Le club joue depuis 1996 en troisième division et dispute ses matchs dans un petit stade.",
    "Cette commune se trouve au pied des montagnes, non loin de la frontière avec la Suisse.",
    "Victor Hugo est un poète et romancier dont les œuvres ont été traduites dans de nombreuses langues.",
    "L'école, ouverte en 1889, accueille encore les enfants des villages qui se trouvent autour.",
    "Le tableau représente une femme assise sur un banc avec un livre dans la main.",
)
SPANISH = (
    "El Tajo es el río más largo de la península y desemboca en el océano Atlántico cerca de Lisboa.",
    "Fue una física y química que recibió dos veces el premio por sus trabajos sobre la radiación.",
    "El castillo se construyó en el siglo XVI para un conde y se quemó durante la guerra.",
    "Ella estudió medicina en Granada y después trabajó como médica en un hospital de Sevilla.",
    "La película cuenta la historia de un pescador que vuelve a su pueblo después de la guerra.",
    "La biblioteca tiene más de un millón de libros y es una de las más antiguas del país.",
    "Tras su muerte, la empresa fue dirigida por su hija, que la llevó a un nuevo éxito.",
    "El club juega desde 1996 en la tercera división y disputa sus partidos en un pequeño estadio.",
    "Este municipio se encuentra al pie de las montañas, no lejos de la frontera con Francia.",
    "Miguel de Cervantes fue un novelista y poeta cuyas obras se han traducido a muchas lenguas.",
    "La escuela, abierta en 1889, recibe todavía a los niños de los pueblos que están alrededor.",
    "El cuadro muestra a una mujer sentada en un banco con un libro en la mano.",
)
OTHERS = (
    ("Il Po è il fiume più lungo del paese e sfocia nel mare Adriatico con un grande delta.", "Italian"),
    ("O rio nasce na serra e segue para o norte até chegar ao mar perto de uma cidade antiga.", "Portuguese"),
    ("De rivier ontspringt in de bergen en stroomt door het land naar zee, waar zij een delta vormt.", "Dutch"),
    ("Staden ligger vid kusten och är känd för sin hamn, som byggdes under medeltiden av kungen.", "Swedish"),
    ("Miasto leży nad rzeką i jest znane z zamku, który był siedzibą króla do roku 1596.", "Polish"),
    (
        "A város a folyó partján fekszik, és egy régi várról ismert, amely a király székhelye volt a háború után.",
        "Hungarian",
    ),
    ("Şehir nehrin kıyısında yer alır ve bir kale ile ünlüdür; bu kale daha sonra müze olarak açıldı.", "Turkish"),
    ("黄河是中国第二长的河流，发源于青藏高原，流经九个省区，最后注入渤海。", "Chinese"),
    ("富士山は静岡県と山梨県にまたがる火山であり、日本で最も高い山として知られている。", "Japanese"),
    ("한강은 대한민국의 중부를 흐르는 강으로 서울을 지나 황해로 흘러 들어간다.", "Korean"),
    ("Волга является самой длинной рекой Европы и впадает в Каспийское море.", "a language in Cyrillic script"),
    ("نهر النيل هو أطول أنهار أفريقيا ويصب في البحر الأبيض المتوسط.", "a language in Arabic script"),
    ("गंगा भारत की एक प्रमुख नदी है जो हिमालय से निकलती है और बंगाल की खाड़ी में गिरती है।", "a language in Devanagari script"),
    ("Ο Νείλος είναι ο μεγαλύτερος ποταμός της Αφρικής και χύνεται στη Μεσόγειο.", "Greek"),
    ("הנילוס הוא הנהר הארוך ביותר באפריקה והוא נשפך אל הים התיכון.", "a language in Hebrew script"),
    ("แม่น้ำเจ้าพระยาเป็นแม่น้ำสายสำคัญของประเทศไทยและไหลลงสู่อ่าวไทย", "Thai"),
)
ENGLISH = (
    "The Danube is the second longest river of the continent and flows into the Black Sea.",
    "El Cielo en las manos is a 1950 Argentine film.",
    "La Vida de una mujer is a 1951 Argentine film directed by Carlos Borcosque.",
    "Adrien Silva ; Anthony da Silva ; Bernardo Veiga de Carvalho e Silva ; Carlos da Silva ; Daniel da Silva",
    "The poem «Der Panther» begins with the words Sein Blick ist vom Vorübergehn der Stäbe so müd geworden.",
    "Peking University (北京大学) and Tsinghua University (清华大学) are in Beijing (北京).",
    "Guo Shengmin || 郭生民 || Female || Han ; Guo Gengmao || 郭庚茂 || Male || Han",
)


@pytest.mark.parametrize("text", GERMAN)
def test_german_prose_is_not_english(text: str) -> None:
    assert foreign_language(text, "en") == "German"


@pytest.mark.parametrize("text", FRENCH)
def test_french_prose_is_not_english(text: str) -> None:
    assert foreign_language(text, "en") == "French"


@pytest.mark.parametrize("text", SPANISH)
def test_spanish_prose_is_not_english(text: str) -> None:
    assert foreign_language(text, "en") == "Spanish"


@pytest.mark.parametrize(("text", "language"), OTHERS)
def test_other_languages_are_told_from_english(text: str, language: str) -> None:
    assert foreign_language(text, "en") == language


@pytest.mark.parametrize("text", ENGLISH)
def test_english_with_foreign_names_stays_english(text: str) -> None:
    assert foreign_language(text, "en") is None


@pytest.mark.parametrize("text", GERMAN)
def test_a_german_model_takes_german(text: str) -> None:
    assert foreign_language(text, "de") is None


@pytest.mark.parametrize("text", [*ENGLISH[:1], *FRENCH])
def test_a_german_model_does_not_take_english_or_french(text: str) -> None:
    assert foreign_language(text, "de") is not None


@pytest.mark.parametrize("text", ["", "Berlin", "Der Spiegel", "東京", "1914–1918 (12.5 %)", "x" * 10_000])
def test_a_short_or_wordless_text_is_undecided(text: str) -> None:
    assert foreign_language(text, "en") is None


def test_a_chinese_model_takes_chinese_and_not_japanese() -> None:
    chinese, japanese = OTHERS[7][0], OTHERS[8][0]
    assert (foreign_language(chinese, "zh"), foreign_language(japanese, "zh")) == (None, "Japanese")


def test_a_japanese_model_takes_japanese_and_not_chinese() -> None:
    chinese, japanese = OTHERS[7][0], OTHERS[8][0]
    assert (foreign_language(japanese, "ja"), foreign_language(chinese, "ja")) == (None, "Chinese")


def test_a_model_of_several_languages_takes_spaced_ones_only() -> None:
    taken = [foreign_language(text, "xx") for text in (GERMAN[0], OTHERS[10][0], OTHERS[7][0], OTHERS[15][0])]
    assert taken == [None, None, "Chinese", "Thai"]


def test_a_language_without_a_list_is_judged_by_its_script_alone() -> None:
    assert (foreign_language(GERMAN[0], "eu"), foreign_language(OTHERS[10][0], "eu")) == (
        None,
        "a language in Cyrillic script",
    )


def test_a_code_without_a_name_is_called_by_its_code() -> None:
    assert (language_name("de"), language_name("tt")) == ("German", "the language 'tt'")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("北京是中华人民共和国的首都。", "Chinese"),
        ("東京は日本の首都です。", "Japanese"),
        ("Москва — столица России.", None),
        ("القاهرة عاصمة مصر", "a language in Arabic script"),
    ],
)
def test_a_short_sentence_in_another_script_is_told_by_its_script(text: str, language: str | None) -> None:
    found = foreign_language(text, "en")
    assert found is not None
    assert language is None or found == language
