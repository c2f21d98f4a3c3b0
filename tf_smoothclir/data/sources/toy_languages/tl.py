"""The toy world in Tagalog."""

from __future__ import annotations

from tf_smoothclir.data.sources.toy_languages import Language, Wording, phrases

VALUES = {
    "region": phrases(
        """
        sa hilagang baybayin, sa disyerto ng asin, sa mga burol ng ambar,
        sa mataas na talampas, sa mga isla sa kanluran, sa maulap na lambak,
        sa tabi ng malalim na lawa, sa malaking gubat, sa paanan ng maniyebeng bundok,
        sa mga latian sa timog, sa kapatagan sa silangan, malapit sa tahimik na look,
        sa makitid na kanyon, malapit sa lumang bulkan, sa tangos ng mga bagyo,
        sa gilid ng sinaunang daan
        """
    ),
    "century": phrases(
        """
        noong ikasiyam na siglo, noong ikasampung siglo, noong ikalabing-isang siglo,
        noong ikalabindalawang siglo, noong ikalabintatlong siglo,
        noong ikalabing-apat na siglo, noong ikalabinlimang siglo,
        noong ikalabing-anim na siglo
        """
    ),
    "climate": phrases(
        """
        klimang banayad at mahalumigmig, klimang mainit at tuyo,
        klimang malamig at mahangin, klimang maulan, klimang mahamog,
        klimang mainit at mabagyo, klimang maniyebe, klimang maaraw
        """
    ),
    "landmark": phrases(
        """
        isang lumang parola, isang tulay na bato, isang tore ng orasan,
        isang bilog na templo, isang gumuhong kastilyo, isang harding botaniko,
        isang malaking aklatan, isang bukal na bronse, isang palengke sa ilalim ng lupa,
        isang molinong de-hangin, isang teatrong kahoy, isang abandonadong minahan,
        isang palasyo ng hari, isang higanteng estatwa
        """
    ),
    "product": phrases(
        """
        asin, seda, kristal, papel, katad, tanso, lana, marmol, sabon, asukal, bakal,
        pabango, porselana, bulak, pagkit, karbon
        """
    ),
    "colour": phrases("pula, asul, berde, dilaw, puti, itim, abo, lila, kahel, kayumanggi"),
    "season": phrases(
        """
        tuwing tagsibol, tuwing tag-init, tuwing taglagas, tuwing taglamig,
        tuwing tag-ulan, tuwing anihan
        """
    ),
    "profession": phrases(
        """
        mangingisda, panadero, manghahabi, magpapalayok, panday, tagapag-alaga ng bubuyog,
        pastol, mandaragat, doktor, guro, karpintero, pintor, mangangalakal, sastre,
        mangangaso, hardinero
        """
    ),
    "theme": phrases(
        """
        dagat, buwan, pag-ibig, digmaan, kalayaan, mga ninuno, ulan, mga bituin, apoy,
        pagkakaibigan, mga panaginip, hangin
        """
    ),
    "ingredient": phrases(
        """
        pulot-pukyutan, limon, luya, asapran, bawang, bigas, lentehas, kabute, keso,
        almendras, mani, kalabasa, niyog, menta, kamatis, sibuyas, igos, kanela, patatas,
        paminta
        """
    ),
    "habitat": phrases(
        """
        sa mga kuweba, sa mga punong may guwang, sa mga tambo,
        sa ilalim ng malalaking bato, sa mga bangin, sa maliliit na lawa,
        sa mga burol ng buhangin, sa mga lungga sa ilalim ng lupa,
        sa mga bahay na walang tao, sa matataas na damo
        """
    ),
    "diet": phrases(
        """
        mga insekto, mga isda, mga beri, mga buto, mga ugat, mga kuhol, mga dahon,
        mga itlog
        """
    ),
}

KINDS = {
    "city": Wording(
        openings=(
            "Ang {name} ay isang lungsod na matatagpuan {region}.",
            "Ang lungsod ng {name} ay makikita {region}.",
        ),
        sentences={
            "century": (
                "Itinatag ang lungsod {century}.",
                "Itinayo ang mga unang pader nito {century}.",
            ),
            "climate": ("May {climate} ang lungsod.", "Nararanasan dito ang {climate}."),
            "landmark": (
                "Sa pangunahing plasa, hinahangaan ng mga bisita ang {landmark}.",
                "Ang pinakatanyag na tanawin ng lungsod ay {landmark}.",
            ),
            "product": (
                "Kilala ang lungsod sa {product} nito.",
                "Ang pangunahing yaman ng lungsod ay {product}.",
            ),
        },
        questions=("Isang lungsod na {clauses}.", "Aling lungsod ang {clauses}?"),
        clauses={
            "region": "matatagpuan {region}",
            "century": "itinatag {century}",
            "climate": "may {climate}",
            "landmark": "may {landmark}",
            "product": "kilala sa {product}",
        },
    ),
    "river": Wording(
        openings=(
            "Ang {name} ay isang ilog na umaagos {region}.",
            "Ang ilog na tinatawag na {name} ay umaagos {region}.",
        ),
        sentences={
            "climate": (
                "Dumaraan ang ilog sa lupaing may {climate}.",
                "Sa mga pampang nito ay may {climate}.",
            ),
            "colour": (
                "Dahil sa putik, kulay {colour} ang tubig nito.",
                "Madalas na nagiging kulay {colour} ang tubig nito.",
            ),
            "season": (
                "Binabaha ng ilog ang mga bukid {season}.",
                "Pinakamataas ang tubig ng ilog {season}.",
            ),
            "product": (
                "Ang mga bangka rito ay kadalasang may dalang {product}.",
                "Ginagamit ang ilog sa paghahatid ng {product}.",
            ),
        },
        questions=("Isang ilog na {clauses}.", "Aling ilog ang {clauses}?"),
        clauses={
            "region": "umaagos {region}",
            "climate": "dumaraan sa lupaing may {climate}",
            "colour": "may tubig na kulay {colour}",
            "season": "umaapaw {season}",
            "product": "ginagamit sa paghahatid ng {product}",
        },
    ),
    "person": Wording(
        openings=(
            "Si {name} ay isang tanyag na tao na nanirahan {region}.",
            "Ang tanyag na si {name} ay ipinanganak {region}.",
        ),
        sentences={
            "century": ("Nabuhay siya {century}.", "Nagsimula ang kanyang karera {century}."),
            "profession": (
                "Kabilang siya sa samahan ng mga {profession}.",
                "Maraming taon siyang nagtrabaho kasama ng mga {profession}.",
            ),
            "theme": (
                "Binabasa pa rin ng marami ang kanyang mga tula tungkol sa {theme}.",
                "Ang pinakamaganda niyang mga liham ay tungkol sa {theme}.",
            ),
            "product": (
                "Yumaman ang kanyang pamilya sa kalakalan ng {product}.",
                "Nagtinda ng {product} ang kanyang mga magulang.",
            ),
        },
        questions=("Isang tanyag na tao na {clauses}.", "Sinong tao ang {clauses}?"),
        clauses={
            "region": "nanirahan {region}",
            "century": "nakilala {century}",
            "profession": "kabilang sa mga {profession}",
            "theme": "sumulat tungkol sa {theme}",
            "product": "nagtinda ng {product}",
        },
    ),
    "dish": Wording(
        openings=(
            "Ang {name} ay isang tradisyonal na pagkaing kinakain {region}.",
            "Ang pagkaing tinatawag na {name} ay niluluto {region}.",
        ),
        sentences={
            "ingredient": (
                "Inihahanda ito na may maraming {ingredient}.",
                "Ang pinakamahalagang sangkap nito ay {ingredient}.",
            ),
            "season": (
                "Madalas itong lutuin ng mga tao {season}.",
                "Pinakamasarap ang lasa nito {season}.",
            ),
            "colour": (
                "Inihahain ito na may sarsang kulay {colour}.",
                "Ginagawa itong kulay {colour} ng mahuhusay na kusinero.",
            ),
            "profession": (
                "Ito ang paboritong pagkain ng mga {profession}.",
                "Ang resipe nito ay unang ginawa ng mga {profession}.",
            ),
        },
        questions=("Isang tradisyonal na pagkain na {clauses}.", "Aling pagkain ang {clauses}?"),
        clauses={
            "region": "kinakain {region}",
            "ingredient": "may {ingredient}",
            "season": "niluluto {season}",
            "colour": "kulay {colour}",
            "profession": "paborito ng mga {profession}",
        },
    ),
    "animal": Wording(
        openings=(
            "Ang {name} ay isang maliit na hayop na naninirahan {region}.",
            "Ang hayop na tinatawag na {name} ay makikita lamang {region}.",
        ),
        sentences={
            "habitat": (
                "Sa araw, natutulog ito {habitat}.",
                "Nagtatago ito sa mga kaaway {habitat}.",
            ),
            "diet": (
                "Sa gabi, naghahanap ito ng {diet}.",
                "Halos puro {diet} lamang ang kinakain nito.",
            ),
            "colour": (
                "Kulay {colour} ang balahibo ng hayop na ito.",
                "Nakikilala ito sa buntot nitong kulay {colour}.",
            ),
            "season": (
                "Ipinanganganak ang mga anak nito {season}.",
                "Madalas makita ang hayop na ito {season}.",
            ),
        },
        questions=("Isang maliit na hayop na {clauses}.", "Aling hayop ang {clauses}?"),
        clauses={
            "region": "naninirahan {region}",
            "habitat": "natutulog {habitat}",
            "diet": "kumakain ng {diet}",
            "colour": "kulay {colour}",
            "season": "nanganganak {season}",
        },
    ),
    "festival": Wording(
        openings=(
            "Ang {name} ay isang malaking pista na ipinagdiriwang {region}.",
            "Ang pista ng {name} ay ginaganap {region}.",
        ),
        sentences={
            "season": (
                "Ginaganap ito taon-taon {season}.",
                "Dumarating ang mga panauhin mula sa malayo {season}.",
            ),
            "theme": (
                "Inaawit ng lahat ang mga lumang kanta tungkol sa {theme}.",
                "Bumibigkas ang mga bata ng mga tula tungkol sa {theme}.",
            ),
            "profession": (
                "Pinararangalan nito ang gawain ng mga {profession}.",
                "Ang handaan ay inihahanda ng mga {profession}.",
            ),
            "landmark": (
                "Dahan-dahang naglalakad ang prusisyon patungo sa {landmark}.",
                "Nagtitipon ang mga mananayaw sa harap ng {landmark}.",
            ),
        },
        questions=("Isang pista na {clauses}.", "Aling pista ang {clauses}?"),
        clauses={
            "region": "ginaganap {region}",
            "season": "ipinagdiriwang {season}",
            "theme": "may mga awit tungkol sa {theme}",
            "profession": "nagpaparangal sa mga {profession}",
            "landmark": "nagtitipon ng mga tao sa harap ng {landmark}",
        },
    ),
}

LANGUAGE = Language(
    conjunction=" at ",
    links=(
        "Binabanggit din sa mga lumang kuwento ang pangalang {links}.",
        "May tala rin sa mga aklat ng paglalakbay tungkol sa pangalang {links}.",
    ),
    values=VALUES,
    kinds=KINDS,
)
