"""Pages of a small model with random weights, for tests in the browser."""

from pathlib import Path

from tests.unit.inference.small import save_small

from bertkit.interpret.ablation import HeadName
from bertkit.interpret.build import build_page
from bertkit.interpret.contexts import WordInContexts
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.opening import Start
from bertkit.interpret.views.view import ViewInputs
from bertkit.reports.interactive import write_page

HOSTILE = "the </script><img src=x onerror=alert(1)>"


def load_small(folder: Path, name: str = "small") -> InspectedModel:
    """Two layers of two heads that read up to 512 tokens."""
    save_small(folder / "model", max_position_embeddings=512)
    loaded = InspectedModel.load(folder / "model")
    return InspectedModel(name, loaded.model, loaded.tokenizer)


def observe(
    inspected: InspectedModel,
    text: str,
    pair: str | None = None,
    without: tuple[HeadName, ...] = (),
    *,
    contexts: WordInContexts | None = None,
) -> ViewInputs:
    """A scene of a text or a pair."""
    encoded = inspected.read(text, pair)
    return ViewInputs(inspected, inspected.observe(encoded, without), contexts)


def write_scene(path: Path, inputs: ViewInputs, *views: str) -> Path:
    """Write the page of a scene with these views, or the first two."""
    write_page(path, build_page(inputs, views or ("heads", "model"), start=Start()))
    return path


# a script: the bytes of what a canvas shows, read from a copy, since reading slows the canvas down
PIXELS = """canvas => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  return context.getImageData(0, 0, canvas.width, canvas.height).data;
}"""
