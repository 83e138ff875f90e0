"""Small models of all kinds that a server has."""

from tests.unit.decoders.small_rewriter import save_rewriter
from tests.unit.inference.small import save_small
from tests.unit.inference.small_causal import save_causal
from tests.unit.inference.small_task import save_answerer, save_classifier, save_model, save_tagger

from bertkit.tasks.choose import ChooseSettings
from bertkit.tasks.choose.task import Choose
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.regress.task import Regress


def save_models(folder):
    """Save them, and return their folders by name."""
    for name, save in {"words": save_small, "writer": save_causal}.items():
        save(folder / name)
    save_rewriter(folder / "translator")
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
