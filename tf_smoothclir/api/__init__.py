"""What `import tf_smoothclir` offers in a notebook: train, load, search, score, evaluate."""
