"""The model card of an encoder-decoder."""

import json

from bertkit._version import __version__
from bertkit.base.wording import pluralize
from bertkit.recipes import model_card
from bertkit.recipes.model_card import (
    build_header,
    describe_counts,
    describe_files,
    describe_settings,
    describe_warnings,
    plain,
    show_number,
    tabulate,
)
from bertkit.recipes.seq2seq.facts import Seq2SeqFacts
from bertkit.reports.text import make_legible


def build_card(facts: Seq2SeqFacts) -> str:
    """Build the card's text."""
    made = (
        f"{facts.kind.summary} {plain(facts.origin.capitalize())} with bertkit {__version__};"
        " `report.html` shows more."
    )
    header = build_header(
        facts,
        "transformers" if facts.config.is_transformers_own else "bertkit",
        pipeline_tag=facts.kind.pipeline_tag,
        metrics=[facts.saved.metric],
    )
    sections = (describe_use, describe_result, describe_data, describe_training)
    return model_card.build_card(header, facts, made, *(build(facts) for build in sections))


def describe_use(facts: Seq2SeqFacts) -> str:
    """Build the section with the command that uses the model."""
    name = json.dumps(make_legible(facts.name), ensure_ascii=False)
    command = f"bertkit {facts.saved.kind} {name} {facts.kind.file_words}"
    return f"## How to use it\n\n```\n{command}\n```"


def describe_result(facts: Seq2SeqFacts) -> str:
    """Build the section with metrics, their signatures and warnings."""
    saved = facts.saved
    rows = [
        [
            name,
            show_number(value),
            show_number(saved.baseline[name]) if name in saved.baseline else "",
        ]
        for name, value in saved.metrics.items()
    ]
    heading = (
        f"## Result\n\nOn {saved.dev.num_pairs:,} held-out pairs, which also selected the best"
        " step:"
    )
    parts = [heading, tabulate(["metric", "value", "copying the beginning of the source"], rows)]
    if saved.signatures:
        signatures = [list(item) for item in saved.signatures.items()]
        parts.append(tabulate(["metric", "signature"], signatures))
    return "\n\n".join([*parts, *describe_warnings(saved.warnings)])


def describe_data(facts: Seq2SeqFacts) -> str:
    """Build the section on the data files: counts and checksums."""
    sets = (facts.saved.train, facts.saved.dev)
    files = [
        ["files", *(one.name for one in sets)],
        ["SHA-256", *(" ".join(one.sha256) for one in sets)],
    ]
    return describe_counts(files, facts.list_counts())


def describe_training(facts: Seq2SeqFacts) -> str:
    """Build the section on training: steps, the initial encoder's files and the settings."""
    saved = facts.saved
    ending = " and ended early" if saved.has_ended_early else ""
    made = (
        f"## Training\n\nThe model was trained for {pluralize(saved.num_steps, 'step')}"
        f" ({pluralize(saved.num_epochs, 'epoch')}){ending}; this is {facts.weights}."
    )
    if not facts.has_initial_model:
        return "\n\n".join([made, describe_settings(facts)])
    name = plain(facts.initial_model)
    files = f"Encoder and decoder were initialized from these files of {name}:"
    return "\n\n".join([made, files, describe_files(facts), describe_settings(facts)])
