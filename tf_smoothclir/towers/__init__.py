"""Towers: tokens in, one vector for each text out. One file each."""
