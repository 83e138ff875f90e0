"""Small models of all kinds that a server has."""

from tests.unit.inference.small import save_small
from tests.unit.inference.small_task import save_answerer, save_classifier, save_model, save_tagger

from bertkit.base.wings import has_wing
from bertkit.tasks.choose import ChooseSettings
from bertkit.tasks.choose.task import Choose
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.regress.task import Regress

HAS_DECODERS = has_wing("bertkit.decoders")


def save_models(folder):
    """Save them, and return their folders by name."""
    save_small(folder / "words")
    if HAS_DECODERS:
        save_writers(folder)
    for name, save_task in {
        "sentiment": save_classifier,
        "entities": save_tagger,
        "reader": save_answerer,
    }.items():
        save_task(folder / name)
    save_model(folder / "reranker", Regress(RegressSettings(max_length=16)))
    save_classifier(folder / "single", type_vocab_size=1)
    save_model(folder / "chooser", Choose(ChooseSettings(max_length=16)))
    return {
        path.name: str(path)
        for path in sorted(folder.iterdir())
        if not path.name.endswith("-whole")
    }


def save_writers(folder):
    """Save the models of the wing of decoders."""
    from tests.unit.decoders.small_rewriter import save_rewriter
    from tests.unit.inference.small_causal import save_causal

    save_causal(folder / "writer")
    save_rewriter(folder / "translator")
