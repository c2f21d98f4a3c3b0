"""Speed and memory of the package beside its rivals; see `README.md`."""
