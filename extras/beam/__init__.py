"""Preparing very large sets with Apache Beam: the command `smoothclir-prepare`."""
