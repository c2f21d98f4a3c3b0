"""Speed and memory of the package compared with its rivals; see `README.md`."""
