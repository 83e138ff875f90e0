"""Raw text → token shards."""
