"""Liu et al. 2020: figures, theory and word vectors of the paper; its models are the library."""
