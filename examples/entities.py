"""Learn to find people, places and organizations from 72 sentences, then tag new ones."""

import bertkit

NEW = (
    "Laura Bianchi moved from Hamburg to Norway.",
    "The World Energy Organization wrote to Peter Higgs.",
    "Martin Keller works for Bosch in Dresden.",
    "Nobody came to the party.",
)


def main() -> None:
    """Fine-tune on labeled words, measure on other sentences, and print the entities found."""
    tag = bertkit.finetune(
        "tag",
        train="data/entities.conll",
        output="out/entities",
        learning_rate=3e-4,  # high, because there are few steps
        epochs=8,
    )

    # Organizations need more examples than these: "University of Oslo" is often half a place.
    measured = bertkit.evaluate(tag, "data/entities-test.conll")
    f1, (low, high) = measured.metrics["f1"], measured.evaluation.intervals["f1"]
    num_sentences = len(measured.predictions)
    print(f"F1 on {num_sentences} sentences: {100 * f1:.1f} % ({100 * low:.1f}–{100 * high:.1f})")

    for text in NEW:
        found = [f"{entity.text} ({entity.type})" for entity in tag(text).entities]
        print(f"{text} -> {', '.join(found) or 'no entity'}")


if __name__ == "__main__":
    main()
