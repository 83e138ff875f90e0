"""Any checkpoint → a folder that other programs run."""
