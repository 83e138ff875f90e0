"""What attention knows of positions, as nodes of ONNX: masks, biases of distances, rotations."""

from bertkit.inference.onnx.graph import OnnxGraph
from bertkit.nn.positions import MAX_DISTANCE, find_buckets, rotary_frequencies

# Far below any score, and well within the range of float16, in case the file is converted to it.
MASKED_SCORE = -1e4
FLOAT = 1  # ONNX's number of the type


class Positions:
    """Writes what a padded batch adds to scores, and turns its heads; each node is written once.

    Args:
        attention_mask: 1 at tokens, `[batch, length]`.
        length: that of the rows, `[1]`.
        biases: the weight of relative positions, `[buckets, heads]`; empty for none.
        num_buckets: of these.
    """

    def __init__(
        self, onnx: OnnxGraph, attention_mask: str, length: str, biases: str, num_buckets: int
    ) -> None:
        self._onnx, self._biases, self._num_buckets = onnx, biases, num_buckets
        present = onnx.node("Unsqueeze", attention_mask, onnx.constant([1, 2]))
        absent = onnx.node("Sub", onnx.constant(1.0), onnx.node("Cast", present, to=FLOAT))
        self._padding = onnx.node("Mul", absent, onnx.constant(MASKED_SCORE))
        bounds = (onnx.constant([0]), length, onnx.constant([1]))
        self._places = onnx.node("Range", *(onnx.node("Squeeze", bound) for bound in bounds))
        self._masks: dict[int | None, str] = {}
        self._waves: dict[float, tuple[str, str]] = {}

    def find_mask(self, window: int | None) -> str:
        """Return what is added to the scores of a layer, `[batch, _, _, length]`.

        Args:
            window: the largest distance at which a token attends to another one, or None for any.
        """
        if window not in self._masks:
            self._masks[window] = self._write_mask(window)
        return self._masks[window]

    def _write_mask(self, window: int | None) -> str:
        onnx, mask = self._onnx, self._padding
        if window is None and not self._biases:
            return mask
        column = onnx.node("Unsqueeze", self._places, onnx.constant([1]))
        distances = onnx.node("Sub", self._places, column)
        if self._biases:
            mask = onnx.node("Add", mask, self._write_biases(distances))
        if window is not None:
            is_far = onnx.node("Greater", onnx.node("Abs", distances), onnx.constant([window]))
            mask = onnx.node("Where", is_far, onnx.constant(MASKED_SCORE), mask)
        return mask

    def _write_biases(self, distances: str) -> str:
        """Write the bias of each head for each distance, `[heads, length, length]`."""
        onnx = self._onnx
        ends = (onnx.node("Squeeze", onnx.constant([end])) for end in (-MAX_DISTANCE, MAX_DISTANCE))
        near = onnx.node("Clip", distances, *ends)
        buckets = onnx.constant(find_buckets(self._num_buckets).tolist(), "buckets")
        chosen = onnx.node("Gather", buckets, onnx.node("Add", near, onnx.constant([MAX_DISTANCE])))
        return onnx.node("Transpose", onnx.node("Gather", self._biases, chosen), perm=[2, 0, 1])

    def turn(self, heads: str, base: float, num_features: int) -> str:
        """Write rotary positions for `[batch, length, heads, features]`."""
        onnx = self._onnx
        if base not in self._waves:
            self._waves[base] = self._write_waves(base, num_features)
        cosine, sine = self._waves[base]
        first, second = onnx.split(heads, 2)
        turned = onnx.node("Concat", onnx.node("Neg", second), first, axis=-1)
        turned = onnx.node("Mul", turned, sine)
        return onnx.node("Add", onnx.node("Mul", heads, cosine), turned)

    def _write_waves(self, base: float, num_features: int) -> tuple[str, str]:
        """Write cosine and sine of the angle of each feature, `[length, 1, features]`."""
        onnx, found = self._onnx, rotary_frequencies(base, num_features).tolist()
        places = onnx.node("Cast", self._places, to=FLOAT)
        places = onnx.node("Unsqueeze", places, onnx.constant([1, 2]))
        angles = onnx.node("Mul", places, onnx.constant(found * 2, f"frequencies_{base}"))
        return onnx.node("Cos", angles), onnx.node("Sin", angles)
