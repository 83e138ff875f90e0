"""`bertkit pretrain`: pre-train a BERT."""

import json as json_module
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bertkit.base.errors import SettingsError
from bertkit.base.wording import pluralize
from bertkit.cli.output import check_standard_output
from bertkit.cli.results import describe_metrics
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.training.signals import stop_at_once


def pretrain(
    *,
    data: Path,
    output: Path | None = None,
    settings: Annotated[PretrainSettings, Parameter(name="*")] = PretrainSettings(),  # noqa: B008
    dry_run: bool = False,
    json: bool = False,
) -> None:
    """Pre-train a BERT on shards of `bertkit prepare`, from scratch or from a pre-trained model.

    With --objective causal, the model reads left to right and predicts the next word, so that
    `bertkit generate` can continue texts.

    Ctrl-C, SIGTERM and SIGHUP stop with a checkpoint; the same command resumes from it, bit for
    bit. Other settings in the same folder are refused, but the budget may grow.

    **Examples**

        bertkit pretrain --data shards/ --model mini --minutes 30 --output run/

        bertkit pretrain --data shards/ --model base --steps 100000 --dry-run

        bertkit pretrain --from google-bert/bert-base-uncased --data my-domain/ --output domain/

        bertkit pretrain --objective causal --data shards/ --output gpt/

    Args:
        data: Folder that `bertkit prepare` wrote.
        output: Folder of the run; required unless --dry-run.
        settings: The settings of the command.
        dry_run: Measure time and memory of a few steps, print them, and write nothing.
        json: Print the result as one JSON object.
    """
    if dry_run:
        _show_dry_run(data, settings, json=json)
        return
    if output is None:
        raise SettingsError("--output is missing: name a folder for the run")
    with stop_at_once(lambda: "stopped while loading; run the same command again"):
        from bertkit.recipes.pretrain.run import pretrain as run

    result = run(data, output, settings)
    if json:
        print(json_module.dumps(asdict(result) | {"checkpoint": str(result.checkpoint)}))
        return
    command = f'fill-mask {output} "She opened the [MASK]."'
    if settings.objective == "causal":
        command = f'generate {output} "She opened the"'
    print(
        f"{pluralize(result.num_steps, 'step')}, {pluralize(result.num_tokens, 'token')},"
        f" {result.elapsed_seconds / 60:.1f} minutes."
        f" Held-out: {describe_metrics(result.metrics)}.\n"
        f"Try: bertkit {command}"
    )


def _show_dry_run(data: Path, settings: PretrainSettings, *, json: bool) -> None:
    from bertkit.recipes.pretrain.run import dry_run

    check_standard_output()
    estimate = dry_run(data, settings)
    if json:
        print(json_module.dumps(asdict(estimate)))
        return
    pace, name = estimate.pace, settings.model or settings.start_from
    share = ""
    if estimate.share_of_peak is not None:
        share = f", {estimate.share_of_peak:.0%} of the speed of a matrix product on this machine"
    print(
        f"{name}: {estimate.num_parameters:,} parameters on {estimate.device},"
        f" {estimate.precision}\n"
        f"a step: {pace.step_seconds:.3f} s, {pace.tokens_per_step:,.0f} tokens"
        f" ({pace.tokens_per_step / pace.step_seconds:,.0f} tokens/s{share})\n"
        f"an evaluation: {pace.evaluation_seconds:.1f} s\n"
        f"memory: {pace.peak_memory_bytes / 1e9:.2f} GB at peak so far\n"
        f"the run: {pluralize(estimate.num_steps, 'step')}, about {estimate.seconds / 60:,.1f}"
        " minutes"
    )
