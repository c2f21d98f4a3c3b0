"""Ways out that few need, each a plug-in or a command of its own; the library knows none."""
