"""The toy world in French."""

from __future__ import annotations

from tf_smoothclir.data.sources.toy_languages import Language, Wording, phrases

VALUES = {
    "region": phrases(
        """
        sur la côte du nord, dans le désert de sel, dans les collines d'ambre, sur le
        haut plateau, dans les îles de l'ouest, dans la vallée brumeuse, au bord du lac
        profond, dans la grande forêt, au pied des montagnes enneigées, dans les marais
        du sud, dans la plaine de l'est, près de la baie tranquille, dans le canyon
        étroit, près du vieux volcan, sur le cap des tempêtes, le long de la route
        antique
        """
    ),
    "century": phrases(
        """
        au neuvième siècle, au dixième siècle, au onzième siècle, au douzième siècle, au
        treizième siècle, au quatorzième siècle, au quinzième siècle, au seizième siècle
        """
    ),
    "climate": phrases(
        """
        un climat doux et humide, un climat chaud et sec, un climat froid et venteux, un
        climat pluvieux, un climat brumeux, un climat chaud et orageux, un climat
        neigeux, un climat ensoleillé
        """
    ),
    "landmark": phrases(
        """
        un vieux phare, un pont de pierre, une tour de l'horloge, un temple rond, un
        château en ruine, un jardin botanique, une grande bibliothèque, une fontaine de
        bronze, un marché souterrain, un moulin à vent, un théâtre en bois, une mine
        abandonnée, un palais royal, une statue géante
        """
    ),
    "product": phrases(
        """
        le sel, la soie, le verre, le papier, le cuir, le cuivre, la laine, le marbre,
        le savon, le sucre, le fer, le parfum, la porcelaine, le coton, la cire, le
        charbon
        """
    ),
    "colour": phrases("rouge, bleue, verte, jaune, blanche, noire, grise, violette, orange, brune"),
    "season": phrases(
        """
        au printemps, en été, en automne, en hiver, à la saison des pluies, au temps des
        moissons
        """
    ),
    "profession": phrases(
        """
        pêcheurs, boulangers, tisserands, potiers, forgerons, apiculteurs, bergers,
        marins, médecins, instituteurs, charpentiers, peintres, marchands, tailleurs,
        chasseurs, jardiniers
        """
    ),
    "theme": phrases(
        """
        la mer, la lune, l'amour, la guerre, la liberté, les ancêtres, la pluie, les
        étoiles, le feu, l'amitié, les rêves, le vent
        """
    ),
    "ingredient": phrases(
        """
        du miel, du citron, du gingembre, du safran, de l'ail, du riz, des lentilles,
        des champignons, du fromage, des amandes, des cacahuètes, de la citrouille, de
        la noix de coco, de la menthe, des tomates, des oignons, des figues, de la
        cannelle, des pommes de terre, du poivre
        """
    ),
    "habitat": phrases(
        """
        dans des grottes, dans des arbres creux, parmi les roseaux, sous de gros
        rochers, sur les falaises, dans de petits étangs, dans les dunes de sable, dans
        des terriers souterrains, dans des maisons vides, dans les hautes herbes
        """
    ),
    "diet": phrases(
        """
        des insectes, des poissons, des baies, des graines, des racines, des escargots,
        des feuilles, des œufs
        """
    ),
}

KINDS = {
    "city": Wording(
        openings=(
            "{name} est une ville située {region}.",
            "La ville de {name} se trouve {region}.",
        ),
        sentences={
            "century": (
                "Elle fut fondée {century}.",
                "Ses premières murailles furent construites {century}.",
            ),
            "climate": ("La ville connaît {climate}.", "On y trouve {climate}."),
            "landmark": (
                "Sur la grande place, les visiteurs admirent {landmark}.",
                "On y visite surtout {landmark}.",
            ),
            "product": (
                "La ville est connue pour {product}.",
                "Sa principale richesse est {product}.",
            ),
        },
        questions=("Une ville {clauses}.", "Quelle est la ville {clauses} ?"),
        clauses={
            "region": "qui se trouve {region}",
            "century": "qui fut fondée {century}",
            "climate": "qui connaît {climate}",
            "landmark": "qui possède {landmark}",
            "product": "qui est connue pour {product}",
        },
    ),
    "river": Wording(
        openings=(
            "{name} est une rivière qui coule {region}.",
            "La rivière nommée {name} coule {region}.",
        ),
        sentences={
            "climate": (
                "Elle traverse un pays qui connaît {climate}.",
                "Sur ses rives, on trouve {climate}.",
            ),
            "colour": (
                "À cause de la boue, son eau est de couleur {colour}.",
                "Son eau prend souvent une couleur {colour}.",
            ),
            "season": (
                "La rivière inonde les champs {season}.",
                "Ses eaux sont au plus haut {season}.",
            ),
            "product": (
                "Les bateaux y transportent surtout {product}.",
                "La rivière sert à transporter {product}.",
            ),
        },
        questions=("Une rivière {clauses}.", "Quelle est la rivière {clauses} ?"),
        clauses={
            "region": "qui coule {region}",
            "climate": "qui coule sous {climate}",
            "colour": "dont l'eau est de couleur {colour}",
            "season": "qui inonde les champs {season}",
            "product": "où l'on transporte {product}",
        },
    ),
    "person": Wording(
        openings=(
            "{name} est un personnage célèbre qui vécut {region}.",
            "Le célèbre personnage nommé {name} naquit {region}.",
        ),
        sentences={
            "century": ("Ce personnage vécut {century}.", "Sa carrière commença {century}."),
            "profession": (
                "Ce personnage appartenait à la confrérie des {profession}.",
                "Pendant des années, ce personnage travailla parmi les {profession}.",
            ),
            "theme": (
                "On lit encore aujourd'hui ses poèmes sur {theme}.",
                "Ses plus belles lettres portent sur {theme}.",
            ),
            "product": (
                "Sa famille fit fortune avec {product}.",
                "Le commerce de sa famille était {product}.",
            ),
        },
        questions=("Un personnage célèbre {clauses}.", "Quel est le personnage {clauses} ?"),
        clauses={
            "region": "qui vécut {region}",
            "century": "qui fut connu {century}",
            "profession": "qui appartenait aux {profession}",
            "theme": "qui écrivit sur {theme}",
            "product": "qui fit fortune avec {product}",
        },
    ),
    "dish": Wording(
        openings=(
            "{name} est un plat traditionnel que l'on mange {region}.",
            "Le plat nommé {name} se prépare {region}.",
        ),
        sentences={
            "ingredient": (
                "On le prépare avec {ingredient}.",
                "La recette contient toujours {ingredient}.",
            ),
            "season": ("On le cuisine surtout {season}.", "Il est bien meilleur {season}."),
            "colour": (
                "On le sert avec une sauce de couleur {colour}.",
                "Les bons cuisiniers lui donnent une belle couleur {colour}.",
            ),
            "profession": (
                "C'est le plat préféré des {profession}.",
                "La recette fut inventée par les {profession}.",
            ),
        },
        questions=("Un plat traditionnel {clauses}.", "Quel est le plat {clauses} ?"),
        clauses={
            "region": "que l'on mange {region}",
            "ingredient": "qui contient {ingredient}",
            "season": "que l'on cuisine {season}",
            "colour": "qui a une couleur {colour}",
            "profession": "qui plaît aux {profession}",
        },
    ),
    "animal": Wording(
        openings=(
            "{name} est un petit animal qui vit {region}.",
            "L'animal nommé {name} ne se rencontre que {region}.",
        ),
        sentences={
            "habitat": ("Le jour, il dort {habitat}.", "Il se cache de ses ennemis {habitat}."),
            "diet": ("La nuit, il cherche {diet}.", "Il mange presque uniquement {diet}."),
            "colour": (
                "Son pelage est de couleur {colour}.",
                "On le reconnaît à sa queue de couleur {colour}.",
            ),
            "season": ("Ses petits naissent {season}.", "On le voit le plus souvent {season}."),
        },
        questions=("Un petit animal {clauses}.", "Quel est l'animal {clauses} ?"),
        clauses={
            "region": "qui vit {region}",
            "habitat": "qui dort {habitat}",
            "diet": "qui mange {diet}",
            "colour": "qui a une couleur {colour}",
            "season": "dont les petits naissent {season}",
        },
    ),
    "festival": Wording(
        openings=(
            "{name} est une grande fête célébrée {region}.",
            "La fête de {name} a lieu {region}.",
        ),
        sentences={
            "season": (
                "Elle a lieu chaque année {season}.",
                "Les invités arrivent de loin {season}.",
            ),
            "theme": (
                "Tout le monde chante de vieilles chansons sur {theme}.",
                "Les enfants récitent des vers sur {theme}.",
            ),
            "profession": (
                "Elle rend hommage au travail des {profession}.",
                "Le repas est préparé par les {profession}.",
            ),
            "landmark": (
                "Le cortège marche lentement vers {landmark}.",
                "Les danseurs se réunissent devant {landmark}.",
            ),
        },
        questions=("Une fête {clauses}.", "Quelle est la fête {clauses} ?"),
        clauses={
            "region": "qui a lieu {region}",
            "season": "que l'on célèbre {season}",
            "theme": "où l'on chante des chansons sur {theme}",
            "profession": "qui rend hommage aux {profession}",
            "landmark": "qui réunit les gens devant {landmark}",
        },
    ),
}

LANGUAGE = Language(
    conjunction=" et ",
    links=(
        "Les mêmes vieilles histoires parlent aussi de {links}.",
        "Dans les récits de voyage, on trouve aussi une note sur {links}.",
    ),
    values=VALUES,
    kinds=KINDS,
)
