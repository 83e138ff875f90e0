"""Choose learning rate, batch size and epochs from the grid of the BERT paper's appendix A.3."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import bertkit

LEARNING_RATES = (5e-5, 3e-5, 2e-5)
BATCH_SIZES = (16, 32)
EPOCHS = (2, 3, 4)  # separate runs, because the learning rate falls to 0 in each


def search(train: str, **settings: Any) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield each choice with the accuracy on held-out rows; `settings` are of all runs."""
    for rate, batch_size, epochs in product(LEARNING_RATES, BATCH_SIZES, EPOCHS):
        choice = {"learning_rate": rate, "batch_size": batch_size, "epochs": epochs}
        model = bertkit.finetune("classify", train=train, **choice, **settings)
        yield choice, model.metrics["accuracy"]


def main() -> None:
    """Try all choices on 84 labeled rows; train the best one again, and measure it on others."""
    found = []
    for choice, accuracy in search("data/reviews.csv", output="out/grid", overwrite=True):
        print(f"{100 * accuracy:.1f} %: {choice}")
        found.append((accuracy, choice))
    _, best = max(found, key=lambda pair: pair[0])
    bertkit.finetune("classify", train="data/reviews.csv", output="out/best", **best)
    measured = bertkit.evaluate("out/best", "data/reviews-test.csv")
    print(f"test rows: {100 * measured.metrics['accuracy']:.1f} % with {best}")


if __name__ == "__main__":
    main()
