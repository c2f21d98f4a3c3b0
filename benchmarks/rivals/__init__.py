"""Other people's systems on our judged pairs, candidate lists and collections; see `__main__`."""
