"""The Python interface of `import tf_smoothclir`: train, load, search, score, evaluate."""
