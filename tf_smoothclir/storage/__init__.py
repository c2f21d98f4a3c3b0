"""Folders that are written whole, state what they hold, and are checked when they are opened."""
