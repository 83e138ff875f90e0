"""Any checkpoint → a Hugging Face folder."""
