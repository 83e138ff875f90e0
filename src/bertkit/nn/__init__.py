"""The parts of the encoder as pure tensor code: no files, no settings, no names of formats."""
