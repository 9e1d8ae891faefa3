"""Words that the rules go by. English, but for particles, endings and given names; casefolded, as phrases are."""

from __future__ import annotations


def words_of(text: str) -> frozenset[str]:
    """The words of a text, each once."""
    return frozenset(text.split())


def lettered(word: str) -> bool:
    """Whether a word of a phrase has no number in it: letters and marks, of any script."""
    return word.isalpha() or not any(map(str.isnumeric, word))


MONTHS = {
    name: number
    for number, names in enumerate(
        (
            *("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul"),
            *("august aug", "september sept sep", "october oct", "november nov", "december dec"),
        ),
        start=1,
    )
    for name in names.split()
}

WEEKDAYS = words_of(
    """
    monday tuesday wednesday thursday friday saturday sunday
    """
)

PRONOUNS = words_of(
    """
    i me my mine we us our ours you your yours he him his she her hers it its they them their theirs who whom whose
    which what that this these those one ones self himself herself itself themselves someone anyone everyone all
    some any none both each other others another
    """
)

SMALL = words_of(
    """
    a an the of and or for in on at to by with from as is are was were be s t than but not into over under between
    vs versus no nor if de la le les du des et und der die das y e
    """
)
"""Words that acronyms leave out, and that stand in no personal name."""

PARTICLES = words_of(
    """
    de da di do dos das del della du la le van von der den ter ten bin bint ibn al el y af st
    """
)
"""Words that may stand inside a personal name."""

SUFFIXES = words_of(
    """
    jr sr ii iii iv v
    """
)

ROMAN = words_of(
    """
    i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi
    """
)

LANGUAGES = words_of(
    """
    arabic bengali chinese czech danish dutch finnish french german greek hebrew hindi hungarian italian japanese
    korean latin malayalam norwegian persian polish portuguese romanian russian serbian spanish swedish tamil telugu
    turkish urdu welsh irish kannada marathi croatian bulgarian ukrainian catalan cantonese mandarin
    """
)

HONORIFICS = words_of(
    """
    sir dame lord lady mr mrs ms miss dr doctor prof professor president king queen prince princess emperor empress
    pope saint st reverend rev father bishop archbishop cardinal rabbi imam sheikh sultan tsar count countess duke
    duchess baron baroness earl general gen colonel col captain capt major lieutenant lt sergeant admiral marshal
    senator sen governor gov judge justice chancellor premier minister ambassador mayor congressman congresswoman
    representative commander coach director actor actress singer author viscount viscountess marquess marquis
    marchioness shah sultana archduke archduchess
    """
)

WEAK_HONORIFICS = words_of(
    """
    saint st general major count earl duke lord lady prince princess father director mrs mr captain capt admiral
    doctor dr coach commander viscount viscountess marquess marquis marchioness baron baroness countess duchess
    """
)
"""Those that often begin a title, a place or a peerage: no reason to take the one word after them for the same."""

PLACE_WORDS = words_of(
    """
    new old north south east west northern southern eastern western central upper lower great greater little big san
    santa saint st los las fort mount mt lake port cape point el la le les de del the college university city royal
    national international united american british english french german first second third grand high black white
    red green blue early late modern ancient young world super inter real ac fc downtown suburban gmina powiat villa
    hotel metropolitan warner radio club deportivo
    """
)
"""Words that begin names of which the last word alone is another thing (new york, san jose)."""

GENERIC = words_of(
    """
    academy accident act action actor actress administration adult africa african agency agreement air aircraft
    airline airport album albums america american animal anthem archipelago area army art article artist artists
    asia asian association atlantic australian author authority award awards band bank bar base basin battle bay
    beach bible biography bishop board boat body book books border boy boys branch bridge british broadcaster
    brother brothers building business cabinet campaign canadian canal capital captain car career case castle
    cathedral catholic cemetery center central centre century ceremony chain chairman champion champions
    championship championships channel chapter character chart charts chief child children chinese christian church
    cinema circuit cities citizen citizens city civil class club clubs coach coast code collection college colony
    comedian comedy commission committee communist community companies company competition composer concert
    conference congress conservative constitution contest continent convention corporation council count countries
    country county couple course court creek crew crown cup currency dance date daughter day days death debut decade
    defense degree delta democratic department deputy desert development dialect diocese director directors
    discovery disease district division doctor document dog drama drummer duke dutch dynasty earl earth east economy
    edition editor education election elections emperor empire energy england english episode episodes era estate
    europe european event events executive exhibition family father federation female festival field fighter figure
    film filmmaker films final finals fire fleet flight florida food football footballer force forces foreign forest
    form foundation france french friend friends game games garden gas general genre german germany girl girls god
    gold golf government governor grade great greek group groups guard guitarist gulf hall head headquarters health
    heart hero high highway hill hills history hockey holiday home horror horse hospital hotel hour house houses
    human husband idea independence india indian industry institute institution international ireland irish island
    islands israeli italian italy japan japanese jewish journal journalist judge jury justice king kingdom knight
    label labour lady lake land language languages large latin law lawyer leader league left legislature level
    liberal library life light line list lord loss love magazine major male man manager market marriage mayor medal
    media medicine member members men mexican mexico middle military million mine minister ministry mission model
    money month months moon mosque mother motor mountain mountains movement movie movies municipality murder museum
    music musical musician muslim name names nation national nations nature navy network new news newspaper night
    north northern norwegian novel novelist novels number ocean office officer official oil opera opposition
    orchestra order organisation organization owner pacific painter painting palace paper parish park parliament
    part parts party past peace peninsula people performance period person philosopher piano pilot place places plan
    planet plant play player players plays plot poem poems poet poetry point police policy politician politics pope
    population port portuguese post power premier presidency president press priest prime prince princess principal
    prison prize producer production professor program programme project protestant province public publisher queen
    race radio railroad railway range rank rate real record records red region reign religion report republic
    republican republicans research reserve residence resort restaurant review revolution right rights river rivers
    road rock role roman room route royal rugby rule ruler russia russian sale sales satellite scene school schools
    science scientist screen screenplay screenwriter sea season seasons seat second secretary section sector
    security senate senator series service services set shell ship ships short show shows side singer single singles
    sister site sky soccer socialist society soldier son song songs songwriter sound soundtrack south southern
    soviet space spanish species sport sports spring square stadium staff stage star stars state states station
    statistics stone store stories storm story strait street studio studios style subdivision subject successor
    sultan summer sun support surface surgeon swedish system systems team teams technology television temple term
    territory texas theater theatre theory time times title titles top tour tournament tower town towns township
    track trade tradition train translation treaty tree trial tribe trilogy troops trophy trust turkish type union
    unit university valley value version vice video view village virgin vocalist voice volume war wars washington
    water waters wave way week west western white wife wildlife wind wine winner winter woman women word words work
    works world writer year years youth zone
    """
)
"""Words that name a kind of thing or a country, not a thing: none is a surname, a title or an acronym by itself."""

GIVEN_NAMES = words_of(
    """
    aaron abdul abdullah abraham adam adolf adrian agnes ahmed aidan akira alan albert alec alejandro alex alexander
    alexandra alexei alfred ali alice alison allan allen amanda amy ana anatoly anders andrea andreas andrei andrew
    andrés andy angela angus anita ann anna anne annie anthony antoine anton antonio arnold arthur ashley audrey
    august barbara barry beatrice ben benjamin bernard bert beth betty bill billy björn bob bobby bogdan boris brad
    brandon brenda brian bruce bruno calvin carl carla carlo carlos carol caroline carolyn catherine cecil charles
    charlie charlotte chris christian christina christine christopher claire clara clarence claude claudia clyde
    colin craig cynthia daniel danny daphne dave david dean deborah deepak denise dennis derek diana diane diego
    dimitri dmitri dominic don donald donna doris dorothy douglas dragan duncan dwight earl eddie edgar edith edmund
    eduardo edward edwin ekaterina eleanor elena eli elizabeth ella ellen elsa emil emily emma enrico eric erik erin
    ernest esther eugene eva evelyn ewan felix fernando fiona florence frances francesco francis francisco franco
    frank franklin fred frederick friedrich fritz gabriel gary gavin gene geoffrey george gerald gerard giorgos
    giovanni giuseppe glen glenn gloria goran gordon grace graham grant greg gregory gustav guy györgy hamish hannah
    hans harold harriet harry harvey hassan heather hector heinrich helen helena henri henrik henry herbert herman
    hermann hiroshi howard hugh hugo hussein ian ibrahim igor indira ingrid ion irene isaac isabel isabella istván
    ivan ivana jack jackie jacob jacques jake james jamie jan jane janet jason jay jean jeff jeffrey jennifer jeremy
    jerome jerry jerzy jesse jessica jessie jesús jim jimmy jin jiří joan joanna joaquin joe joel johan johann john
    johnny jon jonathan jorge josef joseph josephine joshua josé joyce juan judith judy jukka julia julian julie
    julius june justin jános karen karl kate katherine kathleen kathryn kathy keith kelly ken kenji kenneth kevin
    khalid kim knut konstantinos kurt kyle larry lars laura lauren laurence lawrence leah lee leo leon leonard
    leonid leroy leslie lewis lillian linda lisa lloyd lois lorenzo louis louise lucas lucia lucy ludwig luigi luis
    luke lydia lynn lászló mahatma mahmoud malcolm manuel marc marco marcus margaret maria marie marilyn mario
    marion mark martha martin mary maría mathew matt matthew matti maurice max maxwell may megan mel melissa michael
    michel michelle miguel mikael mike mikhail milan mildred milton ming mircea miriam mohamed mohammad mohammed
    molly monica morgan moses muhammad mustafa nancy natalia natalie nathan neil nelson nicholas nick nicolas nicole
    nigel nikolai nikos nina noah noel nora norma norman olaf oleg olga oliver olivia omar osama oscar otto owen
    pablo padraig pamela patricia patrick paul paula pauline pavel pedro peggy pekka penelope percy peter phil
    philip philippe phillip phyllis pierre piotr rachel rahul rajesh ralph ramón randy ravi ray raymond raúl rebecca
    reginald rené ricardo richard rick rita robert roberto robin rodney roger roland ron ronald rosa rose ross roy
    rudolf rupert russell ruth ryan sally sam samantha samuel sandra sanjay sara sarah scott seamus sean sebastian
    sergei sergey sharon sheila sidney simon siobhan sophia sophie stanislav stanley stefan stella stephanie stephen
    steve steven stewart stjepan stuart sung suresh susan suzanne sven svetlana sylvia tadeusz takashi tatiana ted
    teresa terry thelma theodore theresa thomas tim timothy todd tom tommy tony tracy ulrich ursula vaclav vera
    vernon veronica victor victoria vijay vincent viola violet virginia vivian vladimir walter warren wayne wei
    wendy werner wilfred wilhelm will william willie winston wolfgang yoko yuri yusuf yvonne zachary zoltán ángel
    óscar
    """
)
"""Common given names of Europe and America; others are learned from an index (persons.py)."""
