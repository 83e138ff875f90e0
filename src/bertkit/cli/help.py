"""What `--help` shows: the options that people set often; `--help-all` shows all of them."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from cyclopts import App
from cyclopts.help import DefaultFormatter, HelpEntry, HelpPanel

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

HELP_ALL = "--help-all"
# Options that `--help` leaves out, of all commands; they are in the reference, and TOML sets them.
RARE = frozenset(
    {
        "accumulate",
        "adam-epsilon",
        "auto-truncate",
        "average",
        "checkpoint-activations",
        "checkpoint-every",
        "class-weights",
        "combine",
        "cors-allow-origin",
        "decimal",
        "deterministic",
        "dimensions",
        "dropout",
        "encoding",
        "eval-every",
        "eval-examples",
        "features",
        "fsdp",
        "header",
        "keep",
        "label-separator",
        "length-penalty",
        "lora",
        "lowercase",
        "max-broken",
        "max-requests-per-client",
        "max-wait",
        "metric",
        "min-tokens",
        "no-repeat-ngram",
        "normalize",
        "patience",
        "pooling",
        "precision",
        "revision",
        "schedule",
        "shard",
        "stride",
        "threshold",
        "warmup",
        "weight-decay",
    }
)
# Of those, what a command shows all the same, by its words.
OFTEN: dict[str, frozenset[str]] = {"finetune classify": frozenset({"metric"})}


# What stands first in a panel: where the text is, then how long and how a model is trained.
FIRST = (
    *("--train", "--dev", "--data", "--output", "--model", "--size", "--recipe", "--objective"),
    *(
        "--text-column",
        "--pair-column",
        "--label-column",
        "--labels",
        "--multi-label",
        "--few-shot",
    ),
    *("--epochs", "--minutes", "--steps", "--tokens", "--learning-rate"),
    *("--batch-size", "--freeze", "--held-out", "--seed", "--seeds"),
)


class ShortHelp(DefaultFormatter):
    """Panels of options without those that are hidden; a panel without any other goes."""

    def __init__(self, hidden: Collection[str]) -> None:
        super().__init__()
        self.hidden = {f"--{name}" for name in hidden}

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: HelpPanel) -> None:
        """Print one panel."""
        if panel.format == "parameter":
            shown = [entry for entry in panel.entries if self.hidden.isdisjoint(entry.all_options)]
            panel = panel.copy(entries=sorted(shown, key=_find_rank))
        super().__call__(console, options, panel)


def _find_rank(entry: HelpEntry) -> int:
    """Return the place of an option: required ones and those of FIRST come before others."""
    ranks = [FIRST.index(name) for name in entry.all_options if name in FIRST]
    if ranks:
        return ranks[0]
    return 0 if entry.required else len(FIRST)


def take_help_flag(words: Sequence[str]) -> tuple[list[str], bool]:
    """Replace `--help-all` by `--help`; return the words, and whether it was there."""
    options = words[: words.index("--")] if "--" in words else words
    if HELP_ALL not in options:
        return list(words), False
    place = options.index(HELP_ALL)
    return [*words[:place], "--help", *words[place + 1 :]], True


def hide_rare(app: App, words: Sequence[str]) -> None:
    """Have the help of the command that the words name leave out the options of `RARE`."""
    chain, apps, _ = app.parse_commands([word for word in words if word not in app.help_flags])
    command = apps[-1]
    if command.default_command is None:
        return
    name = " ".join(chain)
    hidden = list_options(command) & RARE - OFTEN.get(name, frozenset())
    if hidden:
        app.help_formatter = ShortHelp(hidden)
        app.help_epilogue = (
            f"{len(hidden)} more options are set rarely: `bertkit {name} {HELP_ALL}` shows"
            " them.\n\n"
            f"{app.help_epilogue}"
        )


def list_options(command: App) -> set[str]:
    """Return the names of a command's options, without dashes and their negative forms."""
    options = set()
    for argument in command.assemble_argument_collection():
        flags = [name for name in argument.names if name.startswith("--")]
        if argument.show and flags:
            options.add(flags[0].removeprefix("--"))
    return options
