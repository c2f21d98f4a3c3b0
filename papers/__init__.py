"""The papers: models, systems, tables and figures, as plug-ins of the library."""
