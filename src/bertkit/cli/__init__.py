"""The command line: one file a command, which parses, builds settings and calls a recipe."""
