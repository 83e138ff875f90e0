"""The command line: one file per command, which parses, builds settings and calls a recipe."""
