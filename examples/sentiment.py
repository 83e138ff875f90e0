"""Learn the sentiment of reviews from a CSV file, then label new ones."""

import bertkit

# The last one is labeled wrongly: 84 rows are too few to learn what "but" does.
NEW = (
    "A moving story, wonderfully told.",
    "The battery died after a day.",
    "It looks good, but it breaks at once.",
)


def main() -> None:
    """Fine-tune on 84 labeled rows, measure on 30 others, and label three texts."""
    sentiment = bertkit.finetune("classify", train="data/reviews.csv", output="out/sentiment")

    measured = bertkit.evaluate(sentiment, "data/reviews-test.csv")
    accuracy, (low, high) = measured.metrics["accuracy"], measured.evaluation.intervals["accuracy"]
    num_reviews = len(measured.predictions)
    print(f"{100 * accuracy:.1f} % ({100 * low:.1f}–{100 * high:.1f}) of {num_reviews} are right")
    for text in NEW:
        found = sentiment(text)
        print(f"{found.label} ({100 * found.probability:.1f} %): {text}")


if __name__ == "__main__":
    main()
