"""Answer questions from a folder of documents: search for the passage, then read the answer."""

import bertkit

QUESTIONS = (
    "Who found out what the dance of the bees means?",
    "When did Fresnel invent his lens?",
    "How much coffee do I take for a liter of water?",
)


def main() -> None:
    """Fine-tune a reader, measure it, and answer questions that it hasn't seen."""
    # About half of the answers are right, and a low probability is a warning: 500 questions are
    # few. Readers usually learn from SQuAD, which has 100,000.
    reader = bertkit.finetune(
        "answer",
        train="data/questions.json",
        output="out/reader",
        learning_rate=3e-4,
        epochs=2,
        batch_size=16,
    )
    measured = bertkit.evaluate(reader, "data/questions-test.json")
    f1, (low, high) = measured.metrics["f1"], measured.evaluation.intervals["f1"]
    num_questions = len(measured.predictions)
    print(f"F1 on {num_questions} questions: {100 * f1:.1f} % ({100 * low:.1f}–{100 * high:.1f})")

    for question in QUESTIONS:
        [hit] = bertkit.search(question, "data/documents", top_k=1, index="out/documents.bertkit")
        answer = reader((question, hit.text))
        print(f"{question} {answer.text} ({100 * answer.probability:.1f} %) [{hit.name}]")


if __name__ == "__main__":
    main()
