"""The toy world in Italian."""

from __future__ import annotations

from tf_smoothclir.data.sources.toy_languages import Language, Wording, phrases

VALUES = {
    "region": phrases(
        """
        sulla costa del nord, nel deserto di sale, sulle colline d'ambra, sul grande
        altopiano, nelle isole dell'ovest, nella valle nebbiosa, presso il lago profondo,
        nella grande foresta, ai piedi dei monti innevati, nelle paludi del sud, nella
        pianura dell'est, vicino alla baia tranquilla, nel canyon stretto, vicino al
        vecchio vulcano, sul capo delle tempeste, lungo la strada antica
        """
    ),
    "century": phrases(
        """
        nel nono secolo, nel decimo secolo, nell'undicesimo secolo, nel dodicesimo secolo,
        nel tredicesimo secolo, nel quattordicesimo secolo, nel quindicesimo secolo,
        nel sedicesimo secolo
        """
    ),
    "climate": phrases(
        """
        un clima mite e umido, un clima caldo e secco, un clima freddo e ventoso,
        un clima piovoso, un clima nebbioso, un clima caldo e tempestoso,
        un clima nevoso, un clima soleggiato
        """
    ),
    "landmark": phrases(
        """
        un vecchio faro, un ponte di pietra, una torre dell'orologio, un tempio rotondo,
        un castello in rovina, un giardino botanico, una grande biblioteca, una fontana di
        bronzo, un mercato sotterraneo, un mulino a vento, un teatro di legno, una miniera
        abbandonata, un palazzo reale, una statua gigante
        """
    ),
    "product": phrases(
        """
        il sale, la seta, il vetro, la carta, il cuoio, il rame, la lana, il marmo,
        il sapone, lo zucchero, il ferro, il profumo, la porcellana, il cotone, la cera,
        il carbone
        """
    ),
    "colour": phrases("rosso, blu, verde, giallo, bianco, nero, grigio, viola, arancione, marrone"),
    "season": phrases(
        """
        in primavera, in estate, in autunno, in inverno, nella stagione delle piogge,
        al tempo della mietitura
        """
    ),
    "profession": phrases(
        """
        dei pescatori, dei fornai, dei tessitori, dei vasai, dei fabbri, degli apicoltori,
        dei pastori, dei marinai, dei medici, dei maestri, dei falegnami, dei pittori,
        dei mercanti, dei sarti, dei cacciatori, dei giardinieri
        """
    ),
    "theme": phrases(
        """
        sul mare, sulla luna, sull'amore, sulla guerra, sulla libertà, sugli antenati,
        sulla pioggia, sulle stelle, sul fuoco, sull'amicizia, sui sogni, sul vento
        """
    ),
    "ingredient": phrases(
        """
        miele, limone, zenzero, zafferano, aglio, riso, lenticchie, funghi, formaggio,
        mandorle, arachidi, zucca, noce di cocco, menta, pomodori, cipolle, fichi, cannella,
        patate, pepe
        """
    ),
    "habitat": phrases(
        """
        nelle grotte, negli alberi cavi, tra le canne, sotto le grandi rocce, sulle scogliere,
        in piccoli stagni, tra le dune di sabbia, in tane sotterranee, nelle case vuote,
        nell'erba alta
        """
    ),
    "diet": phrases("insetti, pesci, bacche, semi, radici, lumache, foglie, uova"),
}

KINDS = {
    "city": Wording(
        openings=(
            "{name} è una città situata {region}.",
            "La città di {name} si trova {region}.",
        ),
        sentences={
            "century": (
                "Fu fondata {century}.",
                "Le sue prime mura furono costruite {century}.",
            ),
            "climate": ("La città ha {climate}.", "I suoi abitanti vivono in {climate}."),
            "landmark": (
                "Nella piazza principale i visitatori ammirano {landmark}.",
                "Il monumento più famoso della città è {landmark}.",
            ),
            "product": (
                "La città è nota per {product}.",
                "La sua principale ricchezza è {product}.",
            ),
        },
        questions=("Una città che {clauses}.", "Quale città {clauses}?"),
        clauses={
            "region": "si trova {region}",
            "century": "fu fondata {century}",
            "climate": "ha {climate}",
            "landmark": "possiede {landmark}",
            "product": "si distingue per {product}",
        },
    ),
    "river": Wording(
        openings=(
            "{name} è un fiume che scorre {region}.",
            "Il fiume chiamato {name} scorre {region}.",
        ),
        sentences={
            "climate": (
                "Attraversa un paese che ha {climate}.",
                "Lungo le sue rive si trova {climate}.",
            ),
            "colour": (
                "A causa del fango la sua acqua è di colore {colour}.",
                "La sua acqua prende spesso il colore {colour}.",
            ),
            "season": (
                "Il fiume inonda i campi {season}.",
                "Le sue acque sono più alte {season}.",
            ),
            "product": (
                "Le barche vi trasportano soprattutto {product}.",
                "Il fiume serve a trasportare {product}.",
            ),
        },
        questions=("Un fiume che {clauses}.", "Quale fiume {clauses}?"),
        clauses={
            "region": "scorre {region}",
            "climate": "attraversa un paese con {climate}",
            "colour": "ha l'acqua di colore {colour}",
            "season": "inonda i campi {season}",
            "product": "serve a trasportare {product}",
        },
    ),
    "person": Wording(
        openings=(
            "{name} è un personaggio celebre che visse {region}.",
            "Il celebre personaggio di nome {name} nacque {region}.",
        ),
        sentences={
            "century": (
                "Questo personaggio visse {century}.",
                "La sua carriera cominciò {century}.",
            ),
            "profession": (
                "Questo personaggio apparteneva alla corporazione {profession}.",
                "Per molti anni questo personaggio fece il lavoro {profession}.",
            ),
            "theme": (
                "Ancora oggi si leggono le sue poesie {theme}.",
                "Di questo personaggio restano alcune belle lettere {theme}.",
            ),
            "product": (
                "La sua famiglia fece fortuna con {product}.",
                "I suoi genitori vendevano soltanto {product}.",
            ),
        },
        questions=("Un personaggio celebre che {clauses}.", "Quale personaggio {clauses}?"),
        clauses={
            "region": "visse {region}",
            "century": "fu noto {century}",
            "profession": "fece il lavoro {profession}",
            "theme": "scrisse poesie {theme}",
            "product": "fece fortuna con {product}",
        },
    ),
    "dish": Wording(
        openings=(
            "{name} è un piatto tradizionale che si mangia {region}.",
            "Il piatto chiamato {name} si prepara {region}.",
        ),
        sentences={
            "ingredient": (
                "Si prepara con {ingredient}.",
                "La ricetta è sempre a base di {ingredient}.",
            ),
            "season": ("Si cucina soprattutto {season}.", "Ha un sapore migliore {season}."),
            "colour": (
                "Si serve con una salsa di colore {colour}.",
                "I bravi cuochi lo fanno diventare di colore {colour}.",
            ),
            "profession": (
                "È il piatto preferito {profession}.",
                "La ricetta è un'antica invenzione {profession}.",
            ),
        },
        questions=("Un piatto tradizionale che {clauses}.", "Quale piatto {clauses}?"),
        clauses={
            "region": "si mangia {region}",
            "ingredient": "contiene {ingredient}",
            "season": "si cucina {season}",
            "colour": "ha il colore {colour}",
            "profession": "resta il piatto preferito {profession}",
        },
    ),
    "animal": Wording(
        openings=(
            "{name} è un piccolo animale che vive {region}.",
            "L'animale chiamato {name} si trova soltanto {region}.",
        ),
        sentences={
            "habitat": ("Di giorno dorme {habitat}.", "Si nasconde dai nemici {habitat}."),
            "diet": ("Di notte va in cerca di {diet}.", "Mangia quasi soltanto {diet}."),
            "colour": (
                "Il suo pelo è di colore {colour}.",
                "Si riconosce dalla coda di colore {colour}.",
            ),
            "season": ("I suoi piccoli nascono {season}.", "Si vede più spesso {season}."),
        },
        questions=("Un piccolo animale che {clauses}.", "Quale animale {clauses}?"),
        clauses={
            "region": "vive {region}",
            "habitat": "dorme {habitat}",
            "diet": "mangia {diet}",
            "colour": "ha il pelo di colore {colour}",
            "season": "ha i piccoli {season}",
        },
    ),
    "festival": Wording(
        openings=(
            "{name} è una grande festa celebrata {region}.",
            "La festa di {name} si svolge {region}.",
        ),
        sentences={
            "season": ("Si tiene ogni anno {season}.", "Gli ospiti arrivano da lontano {season}."),
            "theme": (
                "Tutti cantano vecchie canzoni {theme}.",
                "I bambini recitano versi {theme}.",
            ),
            "profession": (
                "Rende onore al lavoro {profession}.",
                "Il banchetto è opera {profession}.",
            ),
            "landmark": (
                "Il corteo cammina lentamente verso {landmark}.",
                "I danzatori si riuniscono davanti a {landmark}.",
            ),
        },
        questions=("Una festa che {clauses}.", "Quale festa {clauses}?"),
        clauses={
            "region": "si svolge {region}",
            "season": "si celebra {season}",
            "theme": "ha canzoni {theme}",
            "profession": "rende onore al lavoro {profession}",
            "landmark": "riunisce la gente davanti a {landmark}",
        },
    ),
}

LANGUAGE = Language(
    conjunction=" e ",
    links=(
        "Le stesse vecchie storie parlano anche di {links}.",
        "Nei racconti di viaggio si trova anche una nota su {links}.",
    ),
    values=VALUES,
    kinds=KINDS,
)
