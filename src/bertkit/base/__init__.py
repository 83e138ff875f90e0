"""The lowest layer: errors, durable files, settings, progress. Start with `files.py`."""
