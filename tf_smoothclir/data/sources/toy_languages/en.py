"""The toy world in English."""

from __future__ import annotations

from tf_smoothclir.data.sources.toy_languages import Language, Wording, phrases

VALUES = {
    "region": phrases(
        """
        on the northern coast, in the salt desert, in the amber hills, on the high
        plateau, on the western islands, in the misty valley, beside the deep lake, in
        the great forest, below the snowy mountains, in the southern marshes, on the
        eastern plain, near the quiet bay, in the narrow canyon, near the old volcano,
        on the stormy cape, along the ancient road
        """
    ),
    "century": phrases(
        """
        in the ninth century, in the tenth century, in the eleventh century, in the
        twelfth century, in the thirteenth century, in the fourteenth century, in the
        fifteenth century, in the sixteenth century
        """
    ),
    "climate": phrases(
        """
        a mild and humid climate, a hot and dry climate, a cold and windy climate, a
        rainy climate, a foggy climate, a hot and stormy climate, a snowy climate, a
        sunny climate
        """
    ),
    "landmark": phrases(
        """
        an old lighthouse, a stone bridge, a clock tower, a round temple, a ruined
        castle, a botanical garden, a great library, a bronze fountain, an underground
        market, a windmill, a wooden theatre, an abandoned mine, a royal palace, a giant
        statue
        """
    ),
    "product": phrases(
        """
        salt, silk, glass, paper, leather, copper, wool, marble, soap, sugar, iron,
        perfume, porcelain, cotton, wax, coal
        """
    ),
    "colour": phrases("red, blue, green, yellow, white, black, grey, purple, orange, brown"),
    "season": phrases(
        """
        in spring, in summer, in autumn, in winter, in the rainy season, at harvest time
        """
    ),
    "profession": phrases(
        """
        fishermen, bakers, weavers, potters, blacksmiths, beekeepers, shepherds,
        sailors, doctors, teachers, carpenters, painters, merchants, tailors, hunters,
        gardeners
        """
    ),
    "theme": phrases(
        """
        the sea, the moon, love, war, freedom, the ancestors, rain, the stars, fire,
        friendship, dreams, the wind
        """
    ),
    "ingredient": phrases(
        """
        honey, lemon, ginger, saffron, garlic, rice, lentils, mushrooms, cheese,
        almonds, peanuts, pumpkin, coconut, mint, tomatoes, onions, figs, cinnamon,
        potatoes, pepper
        """
    ),
    "habitat": phrases(
        """
        in caves, in hollow trees, among the reeds, under big rocks, on cliffs, in small
        ponds, in sand dunes, in underground burrows, in empty houses, in tall grass
        """
    ),
    "diet": phrases("insects, fish, berries, seeds, roots, snails, leaves, eggs"),
}

KINDS = {
    "city": Wording(
        openings=("{name} is a city {region}.", "The city of {name} lies {region}."),
        sentences={
            "century": ("It was founded {century}.", "Its first walls were built {century}."),
            "climate": ("The city has {climate}.", "Its inhabitants live in {climate}."),
            "landmark": (
                "In the main square visitors admire {landmark}.",
                "The most famous sight of the city is {landmark}.",
            ),
            "product": (
                "The city is known for its {product}.",
                "Many of its workshops live on {product}.",
            ),
        },
        questions=("A city that {clauses}.", "Which city {clauses}?"),
        clauses={
            "region": "lies {region}",
            "century": "was founded {century}",
            "climate": "has {climate}",
            "landmark": "has {landmark}",
            "product": "is known for {product}",
        },
    ),
    "river": Wording(
        openings=("{name} is a river {region}.", "The river {name} flows {region}."),
        sentences={
            "climate": (
                "It crosses a country with {climate}.",
                "Along its banks there is {climate}.",
            ),
            "colour": (
                "Because of its mud the water looks {colour}.",
                "The colour of its water is {colour}.",
            ),
            "season": (
                "The river floods the fields {season}.",
                "Its water is highest {season}.",
            ),
            "product": (
                "Boats on the river carry mostly {product}.",
                "The river is used to transport {product}.",
            ),
        },
        questions=("A river that {clauses}.", "Which river {clauses}?"),
        clauses={
            "region": "flows {region}",
            "climate": "crosses land with {climate}",
            "colour": "has {colour} water",
            "season": "floods {season}",
            "product": "transports {product}",
        },
    ),
    "person": Wording(
        openings=(
            "{name} was a famous person who lived {region}.",
            "The great {name} was born {region}.",
        ),
        sentences={
            "century": (
                "This person lived {century}.",
                "The career of this person began {century}.",
            ),
            "profession": (
                "This person belonged to the guild of the {profession}.",
                "For many years this person worked among the {profession}.",
            ),
            "theme": (
                "Many people still read the poems of this person about {theme}.",
                "The most beautiful letters of this person speak about {theme}.",
            ),
            "product": (
                "The family fortune came from the trade in {product}.",
                "In old age this person grew rich by selling {product}.",
            ),
        },
        questions=("A famous person who {clauses}.", "Which person {clauses}?"),
        clauses={
            "region": "lived {region}",
            "century": "was known {century}",
            "profession": "belonged to the {profession}",
            "theme": "wrote about {theme}",
            "product": "sold {product}",
        },
    ),
    "dish": Wording(
        openings=(
            "{name} is a traditional dish eaten {region}.",
            "The dish called {name} is cooked {region}.",
        ),
        sentences={
            "ingredient": (
                "It is prepared with plenty of {ingredient}.",
                "Its most important ingredient is {ingredient}.",
            ),
            "season": ("People cook it above all {season}.", "It tastes best {season}."),
            "colour": (
                "It is served with a {colour} sauce.",
                "Good cooks give it a beautiful {colour} colour.",
            ),
            "profession": (
                "It is the favourite dish of the {profession}.",
                "The recipe was invented by the {profession}.",
            ),
        },
        questions=("A traditional dish that {clauses}.", "Which dish {clauses}?"),
        clauses={
            "region": "is eaten {region}",
            "ingredient": "contains {ingredient}",
            "season": "is cooked {season}",
            "colour": "has a {colour} colour",
            "profession": "pleases the {profession}",
        },
    ),
    "animal": Wording(
        openings=(
            "{name} is a small animal that lives {region}.",
            "The animal called {name} is found only {region}.",
        ),
        sentences={
            "habitat": ("By day it sleeps {habitat}.", "It hides from its enemies {habitat}."),
            "diet": ("At night it looks for {diet}.", "It eats almost nothing but {diet}."),
            "colour": ("Its fur is of a {colour} colour.", "It is known by its {colour} tail."),
            "season": ("Its young are born {season}.", "It is easiest to see {season}."),
        },
        questions=("A small animal that {clauses}.", "Which animal {clauses}?"),
        clauses={
            "region": "lives {region}",
            "habitat": "sleeps {habitat}",
            "diet": "eats {diet}",
            "colour": "has a {colour} colour",
            "season": "has its young {season}",
        },
    ),
    "festival": Wording(
        openings=(
            "{name} is a great festival celebrated {region}.",
            "The festival of {name} takes place {region}.",
        ),
        sentences={
            "season": ("It is held every year {season}.", "Guests arrive {season} from afar."),
            "theme": (
                "Everybody sings old songs about {theme}.",
                "The children recite verses about {theme}.",
            ),
            "profession": (
                "It honours the work of the {profession}.",
                "The feast is prepared by the {profession}.",
            ),
            "landmark": (
                "The procession walks slowly towards {landmark}.",
                "The dancers gather in front of {landmark}.",
            ),
        },
        questions=("A festival that {clauses}.", "Which festival {clauses}?"),
        clauses={
            "region": "takes place {region}",
            "season": "is celebrated {season}",
            "theme": "sings of {theme}",
            "profession": "honours the {profession}",
            "landmark": "gathers before {landmark}",
        },
    ),
}

LANGUAGE = Language(
    conjunction=" and ",
    links=(
        "The same old stories also speak of {links}.",
        "In travel books there is also a note on {links}.",
    ),
    values=VALUES,
    kinds=KINDS,
)
