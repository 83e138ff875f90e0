"""The name of an option means the same in all commands."""

from collections import defaultdict

from tests.wings import needs_all_wings

from bertkit.base.settings import NO_FLAG, WITHOUT_FLAG, Settings, name_flag
from bertkit.cli.app import PACKAGES, build_app, list_commands

# What an option means, where its help is worded for a command. Of all others it is one text.
MEANINGS = {
    "choices-column": "the columns of the choices",
    "context-column": "the column of the contexts",
    "corpus": "texts to search in",
    "data": "a folder of shards, as prepare writes them",
    "dev": "held-out data, to choose the best epoch or to evaluate on",
    "examples": "number of examples to show",
    "json": "print results as JSON",
    "label-column": "the column of what is learned",
    "labels": "all labels, in their order",
    "layer": "a layer; 0, the embeddings, only where these are meant, too",
    "long-texts": "what is read of texts longer than --max-length",
    "max-length": "maximum tokens of a text or window, with special tokens",
    "model": "a run, a model folder or an id of the Hub, to use or to start from",
    "open": "show what was written in the browser",
    "output": "the file or folder to write",
    "output-format": "extension of the files of an --output that is a folder",
    "pair-column": "the column of second texts",
    "pooling": "how the vectors of tokens become that of a text",
    "precision": "precision of matrix products",
    "question-column": "the column of the questions",
    "stride": "tokens between the starts of two windows",
    "text-column": "the column of the texts",
    "top-k": "how many of the best are kept",
    "train": "data to train on",
    "workers": "number of processes",
}


def list_texts() -> dict[str, dict[str, list[str]]]:
    """The help texts of each option, with the commands that have them."""
    texts: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, command in list_commands(build_app()).items():
        if name.split()[0] in PACKAGES:
            continue
        for argument in command.assemble_argument_collection(parse_docstring=True):
            if flags := [flag for flag in argument.names if flag.startswith("--")]:
                text = " ".join((argument.parameter.help or "").split())
                texts[flags[0].removeprefix("--")][text].append(name)
    return texts


@needs_all_wings
def test_an_option_has_one_help_text_or_a_meaning_that_is_worded_for_commands():
    several = {name: texts for name, texts in list_texts().items() if len(texts) > 1}
    assert several.keys() == MEANINGS.keys()


def test_every_option_has_a_help_text():
    assert [name for name, texts in list_texts().items() if "" in texts] == []


@needs_all_wings
def test_settings_without_a_flag_are_known_by_name():
    waiting, found = [Settings], set()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        found |= {name for name, field in kind.model_fields.items() if NO_FLAG in field.metadata}
    assert found == WITHOUT_FLAG
    assert (name_flag("n_best"), name_flag("top_k")) == ("n_best", "--top-k")
