"""`bertkit demo`: train a small BERT in a few minutes."""

import json as json_module
from dataclasses import asdict
from pathlib import Path

from bertkit.base.extras import require_torch
from bertkit.base.progress import announce
from bertkit.cli.next_step import describe_next
from bertkit_demo.settings import DemoSettings


def demo(
    *,
    output: Path = Path("demo"),
    settings: DemoSettings = DemoSettings(),
    json: bool = False,
) -> None:
    """Train a small BERT on the documentation that comes with Python, and write a report.

    Needs no download and no file: the text is the topics of the language reference, and the
    docstrings of the standard library and of the demo's dependencies. The same command resumes
    after Ctrl-C; with more minutes, it trains longer.

    **Examples**

        bertkit demo

        bertkit demo --minutes 30 --output demo-30/

    Args:
        output: Folder for the text, the vocabulary, the shards, the run and report.html.
        json: Print the result as one JSON object.
    """
    require_torch("`bertkit demo`")
    from bertkit_demo.page import describe_result
    from bertkit_demo.run import run_demo

    result = run_demo(output, settings, say=announce)
    if json:
        paths = {"report": str(result.report), "run": str(result.run)}
        print(json_module.dumps(asdict(result) | paths))
        return
    for example in result.examples:
        print(f"{example.text}\n  before   {example.before}\n  after    {example.after}")
        if example.bundled:
            print(f"  bundled  {example.bundled}")
    if any(example.bundled for example in result.examples):
        print("bundled: the model that comes with bertkit, for comparison")
    print(
        f"\n{describe_result(result.accuracies)}\n"
        f"{result.elapsed_seconds / 60:.1f} minutes in total. Report: {result.report.resolve()}\n"
        f"{describe_next('fill-mask', '--model', result.run, 'The function returns a [MASK].')}"
    )
