"""Hyperparameter search with keras-tuner, resumable."""
