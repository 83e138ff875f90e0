"""Convert foreign tensors to ours and back, each exactly once; differences are one error.

`mark_own_head` and `unmark_own_head` do so for the shapes of heads that other tools must refuse.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.checkpoint import LazyTensor
from bertkit.checkpoints.elements import Array, ElementType
from bertkit.checkpoints.names import WORD_EMBEDDINGS, NameTable, show

SHOWN_PROBLEMS = 8

# A tool that knows only names would load bertkit's own classifiers behind a pooler with random
# weights, or without the layers before it, and answer without an error. So their weight is stored
# as [labels, 1, features]: the shape fits no other class. Marks have the names of other layers that
# transformers may look for: that for answers where tokens are scored, and the last one of a
# classifier where a family has layers of its own there.
FEATURE_BASED = "BertFeatureBased"
CLASSIFIER = "classifier.weight"
MARKS = (ANSWERS, LAST_LAYER) = ("qa_outputs.weight", "classifier.out_proj.weight")
MARK_SHAPE = (1,)


def import_tensors(
    foreign: Mapping[str, LazyTensor],
    expected: Mapping[str, tuple[int, ...]],
    source: Path,
    *,
    unused_parts: Collection[str] = (),
    names: NameTable,
) -> dict[str, NDArray[np.float32]]:
    """Convert foreign tensors to ours, each exactly once, as float32.

    Names and shapes are checked before anything is read.

    Args:
        expected: shapes by our name.
        unused_parts: heads that the model doesn't use; their tensors are ignored.
    """
    problems = list_problems(foreign, expected, names, unused_parts)
    report(problems, source)
    tensors = {}
    for name in expected:
        theirs = names.their_names(name)
        parts = [foreign[their].read_float32() for their in theirs]
        problems += [
            f"{their} has NaN or infinity"
            for their, part in zip(theirs, parts, strict=True)
            if not is_finite(part)
        ]
        tensors[name] = np.concatenate(parts) if len(parts) > 1 else parts[0]
        for their in theirs:
            is_copied = len(parts) > 1 or foreign[their].dtype is not ElementType.F32
            if is_copied or name == WORD_EMBEDDINGS:  # which are rarely read in full
                foreign[their].release()
    report(problems + list_unequal_copies(foreign, names), source)
    return tensors


def list_problems(
    foreign: Mapping[str, LazyTensor],
    expected: Mapping[str, tuple[int, ...]],
    names: NameTable,
    unused_parts: Collection[str] = (),
) -> list[str]:
    """List the differences between foreign tensors and the model's names and shapes.

    Problems of expected and of unknown tensors alternate, so that the first few show both kinds.
    """
    problems, unknown = [], []
    used = set()
    for name, shape in expected.items():
        theirs = names.their_names(name)
        part_shape = (shape[0] // len(theirs), *shape[1:])
        for their in theirs:
            used.add(their)
            if problem := _find_problem(their, foreign.get(their), part_shape):
                problems.append(problem)
    for name in sorted(foreign.keys() - used):
        is_copy = names.copies.get(name) in foreign
        is_known = is_copy or name in names.dropped
        if not is_known and names.find_part(name) not in unused_parts:
            unknown.append(f"unknown {show(name)}")
    turns = chain.from_iterable(zip_longest(problems, unknown))
    return [problem for problem in turns if problem is not None]


def list_unequal_copies(foreign: Mapping[str, LazyTensor], names: NameTable) -> list[str]:
    """List tied tensors that are stored twice with different values."""
    return [
        f"{copy} must equal {original}, and doesn't"
        for copy, original in names.copies.items()
        if copy in foreign
        and original in foreign
        and (
            foreign[copy].shape != foreign[original].shape  # that of a copy isn't checked before
            or not np.array_equal(foreign[copy].read(), foreign[original].read())
        )
    ]


def report(problems: list[str], source: Path) -> None:
    """Raise an error that lists the problems, if there are any.

    Raises:
        CheckpointError: there are problems.
    """
    if problems:
        shown = "; ".join(problems[:SHOWN_PROBLEMS])
        more = len(problems) - SHOWN_PROBLEMS
        raise CheckpointError(
            f"{source} doesn't hold the weights of its config: {shown}"
            + (f"; and {more} more" if more > 0 else "")
        )


def is_finite(values: Array) -> bool:
    """Whether no element is NaN or infinite."""
    # A sum is several times faster and finds NaN and infinity, but it may overflow by itself.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum(dtype=np.float32))) or bool(np.isfinite(values).all())


def check_finite(tensors: Mapping[str, LazyTensor]) -> None:
    """Refuse to save weights with NaN or infinity, which no reader accepts."""
    broken = [name for name, tensor in tensors.items() if not is_finite(tensor.read())]
    if broken:
        raise CheckpointError(f"not saved: weights with NaN or infinity in {', '.join(broken)}")


def _find_problem(name: str, tensor: LazyTensor | None, shape: tuple[int, ...]) -> str | None:
    """Return why a foreign tensor can't be used, or None if it can."""
    if tensor is None:
        return f"missing {name}"
    if tensor.shape != shape:
        return f"{name} is {list(tensor.shape)} and must be {list(shape)}"
    if not tensor.dtype.is_floating_point:
        return f"{name} holds {tensor.dtype.value} and must hold floating-point numbers"
    return None


def is_own_head(config: Mapping[str, JsonValue]) -> bool:
    """Whether a config names a head that only bertkit has."""
    return config.get("architectures") == [FEATURE_BASED]


def mark_own_head(tensors: Mapping[str, LazyTensor], marks: Iterable[str]) -> dict[str, LazyTensor]:
    """Return the tensors with a classifier, and marks, in a shape that other tools refuse."""
    weight = tensors[CLASSIFIER]
    num_scores, num_features = weight.shape
    marked = {**tensors, CLASSIFIER: weight.reshaped((num_scores, 1, num_features))}
    read_zeros = partial(np.zeros, MARK_SHAPE, weight.dtype.stored)
    return marked | dict.fromkeys(marks, LazyTensor(MARK_SHAPE, weight.dtype, read_zeros))


def unmark_own_head(tensors: Mapping[str, LazyTensor]) -> dict[str, LazyTensor]:
    """Undo `mark_own_head`; tensors without a mark, as in older files, are returned unchanged."""
    weight = tensors.get(CLASSIFIER)
    if weight is None or len(weight.shape) != 3 or weight.shape[1] != 1:
        return dict(tensors)
    kept = {
        name: tensor
        for name, tensor in tensors.items()
        if name not in MARKS or tensor.shape != MARK_SHAPE
    }
    return {**kept, CLASSIFIER: weight.reshaped((weight.shape[0], weight.shape[2]))}
