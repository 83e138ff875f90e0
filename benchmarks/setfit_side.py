"""SetFit at its defaults, for bench_few_labels.py, in an interpreter that has it.

It reads one object of JSON (the encoder, a seed, (text, label) pairs to learn from and to judge by)
and prints its accuracy.
"""

import json
import sys
import tempfile
from pathlib import Path

from datasets import Dataset
from setfit import SetFitModel, Trainer, TrainingArguments


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    (texts, labels), (judged, truth) = (
        zip(*given[part], strict=True) for part in ("train", "test")
    )
    model = SetFitModel.from_pretrained(given["model"], labels=sorted(set(labels)))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            seed=given["seed"],
            report_to="none",
            save_strategy="no",
            show_progress_bar=False,
        )
        rows = Dataset.from_dict({"text": [*texts], "label": [*labels]})
        Trainer(model, arguments, train_dataset=rows).train()
    found = model.predict([*judged])
    right = [one == other for one, other in zip(found, truth, strict=True)]
    print(json.dumps({"accuracy": sum(right) / len(right)}))


if __name__ == "__main__":
    main()
