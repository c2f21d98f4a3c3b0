"""How well a query is understood, from not at all to by its words; `evidence` finds it out."""

# What people and JSON call them.
NOTHING, NGRAMS, SPELLING, WORDS = range(4)
NAMES = ("nothing", "n-grams", "spelling", "words")
