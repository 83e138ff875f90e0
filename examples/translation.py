"""Train a translator on 300 pairs of sentences, and translate sentences that it hasn't seen."""

from pathlib import Path

import bertkit

NEW = (
    "Heute findet die Lehrerin einen Apfel.",
    "Der Junge hat den Schlüssel gefunden.",
    "Im Sommer schläft die Katze im Garten.",
    "Das Mädchen spielt nicht am See.",
)


def main() -> None:
    """Train encoder and decoder from random weights, and print translations."""
    # The sentences are made of 55 words, in the patterns that the pairs have. Outside of these the
    # model knows nothing; docs/guide/translate.md says what 29,000 captions and an hour give.
    translate = bertkit.finetune(
        "translate",
        train=[Path("data/pairs.de"), Path("data/pairs.en")],
        dev=[Path("data/pairs-test.de"), Path("data/pairs-test.en")],
        output="out/translation",
        size="tiny",
        vocab_size=400,
        tokens_per_batch=512,
        epochs=12,
        learning_rate=3e-3,
        dropout=0.1,
    )
    print(f"BLEU on the test pairs: {translate.metrics['bleu']:.1f}")

    for text in NEW:
        print(f"{text} -> {translate(text).text}")


if __name__ == "__main__":
    main()
