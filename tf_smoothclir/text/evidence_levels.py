"""Levels of evidence of a query, from nothing to its words; `evidence` finds them."""

# What people and JSON call them.
NOTHING, NGRAMS, SPELLING, WORDS = range(4)
NAMES = ("nothing", "n-grams", "spelling", "words")
