"""Experiments: systems trained side by side, and their tables, plots and pages."""
