"""Families: ways to rank, each with all that it takes from learning to search."""
