"""The toy world in English."""

from __future__ import annotations

from tf_smoothclir.data.toy_languages import Language, Wording

VALUES = {
    "region": (
        "on the northern coast",
        "in the salt desert",
        "in the amber hills",
        "on the high plateau",
        "on the western islands",
        "in the misty valley",
        "beside the deep lake",
        "in the great forest",
        "at the foot of the snowy mountains",
        "in the southern marshes",
        "on the eastern plain",
        "near the quiet bay",
        "in the narrow canyon",
        "near the old volcano",
        "on the stormy cape",
        "along the ancient road",
    ),
    "century": (
        "in the ninth century",
        "in the tenth century",
        "in the eleventh century",
        "in the twelfth century",
        "in the thirteenth century",
        "in the fourteenth century",
        "in the fifteenth century",
        "in the sixteenth century",
    ),
    "climate": (
        "a mild and humid climate",
        "a hot and dry climate",
        "a cold and windy climate",
        "a rainy climate",
        "a foggy climate",
        "a hot and stormy climate",
        "a snowy climate",
        "a sunny climate",
    ),
    "landmark": (
        "an old lighthouse",
        "a stone bridge",
        "a clock tower",
        "a round temple",
        "a ruined castle",
        "a botanical garden",
        "a great library",
        "a bronze fountain",
        "an underground market",
        "a windmill",
        "a wooden theatre",
        "an abandoned mine",
        "a royal palace",
        "a giant statue",
    ),
    "product": ("salt", "silk", "glass", "paper", "leather", "copper", "wool", "marble")
    + ("soap", "silver", "iron", "perfume", "porcelain", "cotton", "wax", "coal"),
    "colour": ("red", "blue", "green", "yellow", "white")
    + ("black", "grey", "purple", "orange", "brown"),
    "season": (
        "in spring",
        "in summer",
        "in autumn",
        "in winter",
        "in the rainy season",
        "at harvest time",
    ),
    "profession": ("fishermen", "bakers", "weavers", "potters", "blacksmiths", "beekeepers")
    + ("shepherds", "sailors", "doctors", "teachers", "carpenters", "painters")
    + ("merchants", "tailors", "hunters", "gardeners"),
    "theme": ("the sea", "the moon", "love", "war", "freedom", "the ancestors")
    + ("rain", "the stars", "fire", "friendship", "dreams", "the wind"),
    "ingredient": ("honey", "lemon", "ginger", "saffron", "garlic", "rice", "lentils")
    + ("mushrooms", "cheese", "almonds", "chestnuts", "pumpkin", "coconut", "mint")
    + ("beans", "onions", "figs", "cinnamon", "potatoes", "pepper"),
    "habitat": (
        "in caves",
        "in hollow trees",
        "among the reeds",
        "under big rocks",
        "on cliffs",
        "in small ponds",
        "in sand dunes",
        "in underground burrows",
        "in empty houses",
        "in tall grass",
    ),
    "diet": ("insects", "fish", "berries", "seeds", "roots", "snails", "leaves", "eggs"),
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
            "climate": "crosses {climate}",
            "colour": "has {colour} water",
            "season": "floods {season}",
            "product": "carries boats with {product}",
        },
    ),
    "person": Wording(
        openings=(
            "{name} was a famous person who lived {region}.",
            "The great {name} was born {region}.",
        ),
        sentences={
            "century": (
                "This happened {century}.",
                "The life of this person is told in a book written {century}.",
            ),
            "profession": (
                "This person belonged to the guild of the {profession}.",
                "The parents of this person were both {profession}.",
            ),
            "theme": (
                "Many still read the poems of this person about {theme}.",
                "The most beautiful letters of this person speak about {theme}.",
            ),
            "product": (
                "A fortune came from the trade in {product}.",
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
}
