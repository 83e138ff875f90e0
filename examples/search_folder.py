"""Search a folder of text files by meaning: a query and its passage share hardly a word."""

import bertkit

QUERIES = (
    "repairing a puncture",
    "why a loaf gets bigger",
    "a signal that warns ships at night",
    "which nation is the largest producer of espresso",
)
INDEX = "out/documents.bertkit"


def main() -> None:
    """Print the best passage for each query."""
    for query in QUERIES:
        [hit] = bertkit.search(query, "data/documents", top_k=1, by="vectors", index=INDEX)
        print(f"{query} -> {hit.name} ({hit.score:.3f})")
        print(f"    {hit.text}")


if __name__ == "__main__":
    main()
