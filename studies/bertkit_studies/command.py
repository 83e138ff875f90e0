"""`bertkit study`: its commands are imported when they are called or their help is shown."""

from collections.abc import Mapping

from cyclopts import App, Group

from bertkit_studies.table import STUDIES

HELP = "Reproduce a published experiment, or train vectors from before BERT to compare it with."
BASELINES = Group("Vectors from before BERT", sort_key=1)
EXPERIMENTS = Group("Published experiments", sort_key=0)
# The sentence vectors and word vectors of the study of features, as commands of their own.
VECTORS: Mapping[str, str] = {
    "skip-gram": "bertkit_studies.vectors:skip_gram",
    "skip-thought": "bertkit_studies.vectors:skip_thought",
}


def build_study() -> App:
    """The command, with one of its own for each study and each kind of vectors."""
    app = App(name="study", help=HELP)
    for order, name in enumerate(STUDIES):
        app.command(
            f"bertkit_studies.study_command:{name}", name=name, sort_key=order, group=EXPERIMENTS
        )
    for name, address in VECTORS.items():
        app.command(address, name=name, group=BASELINES)
    return app


study = build_study()  # the entry point
