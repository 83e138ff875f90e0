"""The model card: `README.md`, with the YAML header that the Hub reads."""

from bertkit._version import __version__
from bertkit.base.wording import pluralize
from bertkit.recipes.finetune.card import INTENDED_USE, plain, quote, tabulate
from bertkit.recipes.seq2seq.facts import Seq2SeqFacts
from bertkit.recipes.seq2seq.page import show_number

CARD_FILE = "README.md"


def build_card(facts: Seq2SeqFacts) -> str:
    """Build the card's text."""
    made = (
        f"{facts.kind.summary} {plain(facts.origin.capitalize())} with bertkit {__version__};"
        " `report.html` shows more."
    )
    parts = [
        build_header(facts),
        f"# {plain(facts.name)}",
        made,
        INTENDED_USE,
        describe_use(facts),
        describe_result(facts),
        describe_data(facts),
        describe_making(facts),
    ]
    return "\n\n".join(parts) + "\n"


def build_header(facts: Seq2SeqFacts) -> str:
    """Build the YAML header for the Hub, without license and languages, which people must add."""
    is_theirs = facts.config.is_transformers_own
    lines = ["---", f"library_name: {'transformers' if is_theirs else 'bertkit'}"]
    lines.append(f"pipeline_tag: {facts.kind.pipeline_tag}")
    if facts.parent is not None and facts.is_from_hub:
        lines.append(f"base_model: {quote(facts.parent)}")
    lines += ["tags:", "- bertkit", "metrics:", f"- {quote(facts.saved.metric)}"]
    return "\n".join([*lines, "---"])


def describe_use(facts: Seq2SeqFacts) -> str:
    """Build the section with the command that uses the model."""
    command = f"bertkit {facts.saved.kind} {quote(facts.name)} {facts.kind.file_words}"
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
    parts = [
        heading,
        tabulate(["metric", "value", "copying the beginning of the source"], rows),
    ]
    if saved.signatures:
        signatures = [list(item) for item in saved.signatures.items()]
        parts.append(tabulate(["metric", "signature"], signatures))
    return "\n\n".join([*parts, *(f"**{plain(warning)}**" for warning in saved.warnings)])


def describe_data(facts: Seq2SeqFacts) -> str:
    """Build the section on the data files: counts and checksums."""
    train, dev = facts.saved.train, facts.saved.dev
    rows = [
        ["files", train.name, dev.name],
        ["SHA-256", *(" ".join(one.sha256) for one in (train, dev))],
        *(
            [words, *(f"{number:,}" for number in numbers)]
            for words, *numbers in facts.count_rows()
        ),
    ]
    return "\n\n".join(["## Data", tabulate(["", "training", "held-out"], rows)])


def describe_making(facts: Seq2SeqFacts) -> str:
    """Build the section on training: steps, the parent's files and the settings."""
    saved = facts.saved
    ending = " and ended early" if saved.has_ended_early else ""
    made = (
        f"## How it was made\n\nIt trained for {pluralize(saved.num_steps, 'step')}"
        f" ({pluralize(saved.num_epochs, 'epoch')}){ending}; this is {facts.weights}."
    )
    parts = [made]
    if facts.parent is not None:
        source = facts.record.source
        rows = [[name, sha256] for name, sha256 in source.get("sha256", {}).items()]
        if source.get("commit"):
            rows.append(["commit", source["commit"]])
        parts += [
            f"Encoder and decoder were initialized from these files of {plain(facts.parent)}:",
            tabulate(["file", "SHA-256"], rows),
        ]
    settings = [list(item) for item in facts.settings.items()]
    return "\n\n".join([*parts, tabulate(["setting", "value"], settings)])
