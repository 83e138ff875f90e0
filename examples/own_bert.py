"""Train a BERT of your own from nothing but a text file, and see what it has learned."""

import bertkit

TEXTS = (
    "Ben is a young owl and lives in the [MASK].",
    "It was winter. The snow was white and the [MASK] was frozen.",
    "The cow stands all day and is never bored. Every morning she eats [MASK].",
)


def main() -> None:
    """Train vocabulary and encoder on 80 short stories, and fill blanks."""
    # The stories come from a grammar of 112 words. Of a real book a model of half a minute learns
    # only which words are frequent; see docs/guide/pretraining.md for what real text takes.
    trained = bertkit.pretrain(
        "data/story.txt", output="out/own-bert", size="tiny", steps=300, max_length=64
    )
    accuracy, num_blanks = trained.metrics["mlm_accuracy"], trained.metrics["mlm_count"]
    print(f"{100 * accuracy:.1f} % of {num_blanks:.0f} held-out blanks are filled correctly")

    for text in TEXTS:
        best = bertkit.fill_mask(text, model="out/own-bert").blanks[0][0]
        print(f"{text.replace('[MASK]', best.token.upper())} ({100 * best.probability:.1f} %)")


if __name__ == "__main__":
    main()
