"""The toy world in Swahili."""

from __future__ import annotations

from tf_smoothclir.data.sources.toy_languages import Language, Wording, phrases

VALUES = {
    "region": phrases(
        """
        kwenye pwani ya kaskazini, kwenye jangwa la chumvi, kwenye vilima vya kaharabu,
        kwenye uwanda wa juu, kwenye visiwa vya magharibi, kwenye bonde la ukungu,
        kando ya ziwa lenye kina, kwenye msitu mkubwa, chini ya milima ya theluji,
        kwenye vinamasi vya kusini, kwenye tambarare ya mashariki, karibu na ghuba tulivu,
        kwenye korongo jembamba, karibu na volkano ya zamani, kwenye rasi ya dhoruba,
        kando ya barabara ya kale
        """
    ),
    "century": phrases(
        """
        katika karne ya tisa, katika karne ya kumi, katika karne ya kumi na moja,
        katika karne ya kumi na mbili, katika karne ya kumi na tatu,
        katika karne ya kumi na nne, katika karne ya kumi na tano,
        katika karne ya kumi na sita
        """
    ),
    "climate": phrases(
        """
        hali ya hewa ya wastani na unyevu, hali ya hewa ya joto na ukavu,
        hali ya hewa ya baridi na upepo, hali ya hewa ya mvua nyingi,
        hali ya hewa ya ukungu, hali ya hewa ya joto na dhoruba,
        hali ya hewa ya theluji, hali ya hewa ya jua kali
        """
    ),
    "landmark": phrases(
        """
        mnara wa taa wa zamani, daraja la mawe, mnara wa saa, hekalu la duara,
        ngome iliyobomoka, bustani ya mimea, maktaba kubwa, chemchemi ya shaba nyeusi,
        soko la chini ya ardhi, kinu cha upepo, ukumbi wa michezo wa mbao, mgodi ulioachwa,
        jumba la kifalme, sanamu kubwa sana
        """
    ),
    "product": phrases(
        """
        chumvi, hariri, vioo, karatasi, ngozi, shaba, sufu, marumaru, sabuni, sukari,
        chuma, manukato, kauri, pamba, nta, makaa ya mawe
        """
    ),
    "colour": phrases(
        """
        rangi nyekundu, rangi ya buluu, rangi ya kijani, rangi ya manjano, rangi nyeupe,
        rangi nyeusi, rangi ya kijivu, rangi ya zambarau, rangi ya machungwa,
        rangi ya kahawia
        """
    ),
    "season": phrases(
        """
        wakati wa majira ya machipuko, wakati wa kiangazi, wakati wa majira ya kupukutika,
        wakati wa majira ya baridi, wakati wa majira ya mvua, wakati wa mavuno
        """
    ),
    "profession": phrases(
        """
        wavuvi, waokaji mikate, wafumaji, wafinyanzi, wahunzi, wafugaji wa nyuki,
        wachungaji, mabaharia, madaktari, walimu, maseremala, wachoraji, wafanyabiashara,
        washonaji, wawindaji, watunza bustani
        """
    ),
    "theme": phrases(
        """
        bahari, mwezi, mapenzi, vita, uhuru, mababu, mvua, nyota, moto, urafiki, ndoto,
        upepo
        """
    ),
    "ingredient": phrases(
        """
        asali, limau, tangawizi, zafarani, kitunguu saumu, mchele, dengu, uyoga, jibini,
        lozi, karanga, maboga, nazi, nanaa, nyanya, vitunguu, tini, mdalasini, viazi,
        pilipili manga
        """
    ),
    "habitat": phrases(
        """
        kwenye mapango, kwenye miti yenye mashimo, kati ya matete, chini ya miamba mikubwa,
        kwenye magenge, kwenye madimbwi madogo, kwenye vilima vya mchanga,
        kwenye mashimo ya ardhini, kwenye nyumba tupu, kwenye nyasi ndefu
        """
    ),
    "diet": phrases("wadudu, samaki, matunda madogo, mbegu, mizizi, konokono, majani, mayai"),
}

KINDS = {
    "city": Wording(
        openings=("{name} ni mji ulioko {region}.", "Mji wa {name} uko {region}."),
        sentences={
            "century": (
                "Mji huu ulianzishwa {century}.",
                "Kuta zake za kwanza zilijengwa {century}.",
            ),
            "climate": ("Mji huu una {climate}.", "Wakazi wake wanaishi katika {climate}."),
            "landmark": (
                "Kwenye uwanja mkuu wageni hutazama {landmark}.",
                "Kivutio maarufu zaidi cha mji huu ni {landmark}.",
            ),
            "product": (
                "Mji huu unajulikana kwa {product}.",
                "Utajiri wake mkubwa zaidi ni {product}.",
            ),
        },
        questions=("Mji {clauses}.", "Ni mji gani {clauses}?"),
        clauses={
            "region": "ulioko {region}",
            "century": "ulioanzishwa {century}",
            "climate": "wenye {climate}",
            "landmark": "wenye {landmark}",
            "product": "unaojulikana kwa {product}",
        },
    ),
    "river": Wording(
        openings=(
            "{name} ni mto unaotiririka {region}.",
            "Mto uitwao {name} unatiririka {region}.",
        ),
        sentences={
            "climate": (
                "Mto huu unapita katika nchi yenye {climate}.",
                "Kwenye kingo zake kuna {climate}.",
            ),
            "colour": (
                "Kwa sababu ya matope maji yake yana {colour}.",
                "Mara nyingi maji yake huwa na {colour}.",
            ),
            "season": (
                "Mto huu hufurika mashambani {season}.",
                "Maji yake huwa mengi zaidi {season}.",
            ),
            "product": (
                "Mashua za mto huu hubeba hasa {product}.",
                "Mto huu hutumika kusafirisha {product}.",
            ),
        },
        questions=("Mto {clauses}.", "Ni mto gani {clauses}?"),
        clauses={
            "region": "unaotiririka {region}",
            "climate": "unaopita katika nchi yenye {climate}",
            "colour": "wenye maji ya {colour}",
            "season": "unaofurika {season}",
            "product": "unaotumika kusafirisha {product}",
        },
    ),
    "person": Wording(
        openings=(
            "{name} alikuwa mtu maarufu aliyeishi {region}.",
            "Mtu maarufu aitwaye {name} alizaliwa {region}.",
        ),
        sentences={
            "century": ("Mtu huyu aliishi {century}.", "Kazi yake ilianza {century}."),
            "profession": (
                "Mtu huyu alikuwa mwanachama wa chama cha {profession}.",
                "Kwa miaka mingi alifanya kazi pamoja na {profession}.",
            ),
            "theme": (
                "Watu wengi bado wanasoma mashairi yake kuhusu {theme}.",
                "Barua zake nzuri zaidi ni kuhusu {theme}.",
            ),
            "product": (
                "Familia yake ilitajirika kwa biashara ya {product}.",
                "Wazazi wake walikuwa wakiuza {product}.",
            ),
        },
        questions=("Mtu maarufu {clauses}.", "Ni mtu gani {clauses}?"),
        clauses={
            "region": "aliyeishi {region}",
            "century": "aliyejulikana {century}",
            "profession": "aliyefanya kazi pamoja na {profession}",
            "theme": "aliyeandika kuhusu {theme}",
            "product": "aliyefanya biashara ya {product}",
        },
    ),
    "dish": Wording(
        openings=(
            "{name} ni chakula cha jadi kinacholiwa {region}.",
            "Chakula kiitwacho {name} hupikwa {region}.",
        ),
        sentences={
            "ingredient": (
                "Hutayarishwa kwa kutumia {ingredient} kwa wingi.",
                "Kiungo chake muhimu zaidi ni {ingredient}.",
            ),
            "season": ("Watu hukipika hasa {season}.", "Huwa kitamu zaidi {season}."),
            "colour": (
                "Huliwa pamoja na mchuzi wa {colour}.",
                "Wapishi hodari hukipa {colour} ya kupendeza.",
            ),
            "profession": (
                "Ni chakula kinachopendwa sana na {profession}.",
                "Chakula hiki kilibuniwa zamani na {profession}.",
            ),
        },
        questions=("Chakula cha jadi {clauses}.", "Ni chakula gani {clauses}?"),
        clauses={
            "region": "kinacholiwa {region}",
            "ingredient": "chenye {ingredient}",
            "season": "kinachopikwa {season}",
            "colour": "chenye {colour}",
            "profession": "kinachopendwa na {profession}",
        },
    ),
    "animal": Wording(
        openings=(
            "{name} ni mnyama mdogo anayeishi {region}.",
            "Mnyama aitwaye {name} hupatikana {region} tu.",
        ),
        sentences={
            "habitat": (
                "Wakati wa mchana mnyama huyu hulala {habitat}.",
                "Hujificha dhidi ya maadui wake {habitat}.",
            ),
            "diet": ("Wakati wa usiku hutafuta {diet}.", "Chakula chake kikuu ni {diet}."),
            "colour": ("Manyoya yake yana {colour}.", "Hutambulika kwa mkia wake wa {colour}."),
            "season": (
                "Watoto wake huzaliwa {season}.",
                "Mnyama huyu huonekana mara nyingi zaidi {season}.",
            ),
        },
        questions=("Mnyama mdogo {clauses}.", "Ni mnyama gani {clauses}?"),
        clauses={
            "region": "anayeishi {region}",
            "habitat": "anayelala {habitat}",
            "diet": "anayekula {diet}",
            "colour": "mwenye {colour}",
            "season": "anayezaa {season}",
        },
    ),
    "festival": Wording(
        openings=(
            "{name} ni sherehe kubwa inayofanyika {region}.",
            "Sherehe ya {name} hufanyika {region}.",
        ),
        sentences={
            "season": ("Hufanyika kila mwaka {season}.", "Wageni hufika kutoka mbali {season}."),
            "theme": (
                "Kila mtu huimba nyimbo za zamani kuhusu {theme}.",
                "Watoto hukariri mashairi kuhusu {theme}.",
            ),
            "profession": (
                "Sherehe hii huheshimu kazi ya {profession}.",
                "Karamu yake huandaliwa na {profession}.",
            ),
            "landmark": (
                "Maandamano huelekea polepole kwenye {landmark}.",
                "Wachezaji ngoma hukusanyika mbele ya {landmark}.",
            ),
        },
        questions=("Sherehe {clauses}.", "Ni sherehe gani {clauses}?"),
        clauses={
            "region": "inayofanyika {region}",
            "season": "inayosherehekewa {season}",
            "theme": "yenye nyimbo kuhusu {theme}",
            "profession": "inayoheshimu kazi ya {profession}",
            "landmark": "inayokusanya watu mbele ya {landmark}",
        },
    ),
}

LANGUAGE = Language(
    conjunction=" na ",
    links=(
        "Hadithi hizo hizo za kale zinataja pia {links}.",
        "Katika vitabu vya safari kuna pia maelezo kuhusu {links}.",
    ),
    values=VALUES,
    kinds=KINDS,
)
