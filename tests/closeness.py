"""How near a computed number must be to its reference: the one way to compare floats in tests.

Kernels add up in an order of their own on each kind of processor, so the error of a sum is a share
of the largest values in it, not of the one number that is looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

# Share of the largest reference value.
TOLERANCES = {
    # 53 bits, 1e-16 a rounding: seven digits are left for the sums of a few layers
    "float64": 1e-9,
    # 24 bits, 6e-8 a rounding: kernels of four kinds of processors differ by up to 2.5e-6
    "float32": 1e-5,
    # 11 bits, 5e-4 a rounding: ten roundings, one behind the other
    "float16": 5e-3,
    # 8 bits, 4e-3 a rounding: ten roundings, one behind the other
    "bfloat16": 4e-2,
}


def assert_close(
    actual: Any,
    reference: Any,
    precision: str | None = None,
    *,
    within: float | None = None,
    floor: float = 1.0,
) -> None:
    """Compare numbers, tensors, arrays, and lists and dicts of them, of the same shape.

    Args:
        actual: What was computed.
        reference: What is right. Anything in it that isn't a number has to be equal.
        precision: A name of `TOLERANCES`; by default the reference's own. Python's numbers are
            float64: name the precision that they were computed in.
        within: The greatest difference, in place of a precision, for what isn't a rounding error:
            digits that are shown, pixels, samples that are drawn.
        floor: Smaller values than this are compared as if the largest were this. For
            probabilities or losses far below 1 that must agree in their first digits: 0.
    """
    expected = close(reference, precision, within=within, floor=floor)
    assert expected == actual, expected.difference


@dataclass(eq=False)
class Closeness:
    """Equal to what is close to a reference."""

    reference: Any
    precision: str | None
    within: float | None
    floor: float
    difference: str = field(default="", init=False)  # that of the last comparison

    __array_ufunc__ = None  # an array on the left leaves the comparison to this object
    __hash__ = None

    def __eq__(self, actual: object) -> bool:
        """Tell whether each number is within the limit; `difference` says where it isn't."""
        self.difference = self.find_difference(actual, self.reference, "")
        return not self.difference

    def __repr__(self) -> str:
        return f"close({self.reference!r})" + (f" [{self.difference}]" if self.difference else "")

    def find_difference(self, actual: Any, reference: Any, place: str) -> str:
        """Say where and how far the first difference is, or nothing."""
        if isinstance(reference, Mapping):
            if not isinstance(actual, Mapping) or actual.keys() != reference.keys():
                return f"{place} {actual!r} hasn't the keys {list(reference)}"
            pairs = [(actual[key], one, f"{place}[{key!r}]") for key, one in reference.items()]
        elif (wanted := to_array(reference)) is not None:
            limit = self.find_limit(wanted, find_precision(reference))
            return compare(to_array(actual), wanted, limit, place)
        elif isinstance(reference, list | tuple):
            if not isinstance(actual, list | tuple) or len(actual) != len(reference):
                return f"{place} {actual!r} isn't a list of {len(reference)}"
            rows = zip(actual, reference, strict=True)
            pairs = [(one, other, f"{place}[{index}]") for index, (one, other) in enumerate(rows)]
        else:
            return "" if actual == reference else f"{place} {actual!r} isn't {reference!r}"
        return next(filter(None, (self.find_difference(*each) for each in pairs)), "")

    def find_limit(self, wanted: np.ndarray, own: str) -> float:
        """Find the greatest difference that is allowed."""
        if self.within is not None:
            return self.within
        largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
        return TOLERANCES[self.precision or own] * max(self.floor, largest)


def compare(found: np.ndarray | None, wanted: np.ndarray, limit: float, place: str) -> str:
    """Compare numbers; NaN is close to nothing, infinity to itself."""
    if found is None or found.shape != wanted.shape:
        shape = "no numbers" if found is None else f"shape {found.shape}"
        return f"{place} {shape}, not shape {wanted.shape}"
    with np.errstate(invalid="ignore"):
        distances = np.where(found == wanted, 0.0, np.abs(found - wanted))
    if (distances <= limit).all():
        return ""
    worst = np.unravel_index(np.nan_to_num(distances, nan=np.inf).argmax(), distances.shape)
    where = f"{place}{[int(one) for one in worst]}" if worst else place
    far = f"{where} {found[worst]} is {distances[worst]:.3g} from {wanted[worst]}"
    return f"{far}; at most {limit:.3g}"


def to_array(value: Any) -> np.ndarray | None:
    """Take numbers of any kind as float64; None if there is anything else among them."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", torch.float64).numpy()
    if not are_numbers(value):
        return None
    try:
        return np.asarray(value, np.float64)
    except ValueError:  # rows of several lengths
        return None


def are_numbers(value: Any) -> bool:
    """Tell whether a value is a number, or holds nothing else."""
    if isinstance(value, list | tuple):
        return all(map(are_numbers, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf"
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def find_precision(reference: Any) -> str:
    """Find the name of a reference's floats in `TOLERANCES`."""
    is_typed = isinstance(reference, torch.Tensor | np.ndarray | np.generic)
    dtype = reference.dtype if is_typed else np.asarray(reference).dtype
    name = str(dtype).removeprefix("torch.")
    return name if name in TOLERANCES else "float64"


def close(
    reference: Any,
    precision: str | None = None,
    *,
    within: float | None = None,
    floor: float = 1.0,
) -> Closeness:
    """What is `==` to numbers that `assert_close` would take; the arguments are the same."""
    return Closeness(reference, precision, within, floor)
