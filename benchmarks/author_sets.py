"""Sentences of six authors, each with one book to learn from and another to be judged by.

They are read from `corpus/books` and `corpus/more-books` of the folder of public data sets: books
of Standard Ebooks (CC0), gzipped, a paragraph a line.
"""

import random
from pathlib import Path

from bertkit.data.sentences import split_sentences
from text_sets import read_gzip

NUM_WORDS = range(8, 41)  # of a sentence
SEED = 0
BOOKS = {  # by author: the book to learn from, and the one that is held out
    "Austen": (
        "books/jane-austen_pride-and-prejudice",
        "more-books/jane-austen_emma",
    ),
    "Darwin": (
        "books/charles-darwin_the-origin-of-species",
        "more-books/charles-darwin_the-voyage-of-the-beagle",
    ),
    "Dickens": (
        "books/charles-dickens_bleak-house",
        "books/charles-dickens_david-copperfield",
    ),
    "Doyle": (
        "books/arthur-conan-doyle_the-adventures-of-sherlock-holmes",
        "more-books/arthur-conan-doyle_the-memoirs-of-sherlock-holmes",
    ),
    "London": (
        "books/jack-london_short-fiction",
        "more-books/jack-london_the-sea-wolf",
    ),
    "Trollope": (
        "books/anthony-trollope_the-way-we-live-now",
        "more-books/anthony-trollope_barchester-towers",
    ),
}


def read_authors(data: Path, number: int, *, held_out: bool = False) -> list[tuple[str, str]]:
    """Return (sentence, author), `number` of each author, in random order."""
    generator = random.Random(SEED)
    chosen = []
    for author, books in BOOKS.items():
        lines = read_gzip(data / "corpus" / f"{books[held_out]}.txt.gz").split("\n")
        sentences = [each for line in lines for each in split_sentences(line)]
        known = [*dict.fromkeys(each for each in sentences if len(each.split()) in NUM_WORDS)]
        chosen += [(each, author) for each in generator.sample(known, number)]
    generator.shuffle(chosen)
    return chosen
