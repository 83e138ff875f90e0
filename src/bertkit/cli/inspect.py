"""`bertkit inspect`: what a model folder is."""

import json as json_module
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table


def inspect(path: Path, /, *, json: bool = False) -> None:
    """Say what a model is: sizes, parameters by part, attention heads, training so far.

    **Examples**

        bertkit inspect run/

    Args:
        path: A run of `bertkit pretrain`, or a model folder.
        json: Print one JSON object.
    """
    from bertkit.inference.description import describe

    description = describe(path)
    config = description.config
    if json:
        values = asdict(description) | {
            "folder": str(description.folder),
            "config": config.to_dict(),
            "num_parameters": description.num_parameters,
        }
        print(json_module.dumps(values))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("model", f"{description.architecture}, in {description.folder}")
    table.add_row(
        "sizes",
        f"{config.num_hidden_layers} layers, hidden {config.hidden_size}, feed-forward"
        f" {config.intermediate_size}, vocabulary {config.vocab_size:,},"
        f" up to {config.max_position_embeddings} tokens",
    )
    table.add_row(
        "attention",
        f"{description.num_attention_heads} heads ({config.num_attention_heads} in each layer)",
    )
    for part, number in description.parameters.items():
        table.add_row("", f"{number:>13,}  {part}")
    table.add_row("parameters", f"{description.num_parameters:>13,}")
    if description.training is not None:
        training = description.training
        table.add_row(
            "training",
            f"{training['steps']:,} of {training['of_steps']:,} steps, {training['tokens']:,}"
            f" tokens, {training['elapsed_seconds'] / 60:.1f} minutes",
        )
        if held_out := training["held_out"]:
            table.add_row(
                "held-out",
                f"loss {held_out['loss']:.3f}, masked accuracy {held_out['mlm_accuracy']:.1%},"
                f" next-sentence accuracy {held_out['nsp_accuracy']:.1%}",
            )
    Console(soft_wrap=True, highlight=False).print(table)
