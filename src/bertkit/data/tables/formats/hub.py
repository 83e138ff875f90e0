"""Datasets of the Hub, through the `datasets` library, which never runs their code."""

import re
from collections.abc import Mapping
from typing import Any

from bertkit.base.errors import HubError, InputError, MissingExtraError
from bertkit.base.extras import describe_install
from bertkit.data.tables.decoder import RowDecoder, show_names
from bertkit.data.tables.formats.parquet import ROWS_AT_ONCE, name_classes, read_batches
from bertkit.data.tables.record import Rows

ADDRESS = re.compile(
    r"hub:(?P<name>[\w.-]+(/[\w.-]+)?)(/(?P<config>[\w.-]+))?(@(?P<split>[\w.-]+))?"
)
SPLITS = {
    "train": ("train",),
    "dev": ("validation", "dev", "validation_matched"),
    "test": ("test", "test_matched"),
}


def read_dataset(dataset: Any, decoder: RowDecoder) -> Rows:
    """Read a record for each row of a `datasets.Dataset`; class labels are returned as names."""
    names = {
        column: names
        for column, feature in dataset.features.items()
        if (names := getattr(getattr(feature, "feature", feature), "names", None))
    }
    tables = dataset.with_format("arrow").iter(batch_size=ROWS_AT_ONCE)
    batches = (batch for table in tables for batch in table.to_batches())
    return Rows(tuple(dataset.column_names), name_classes(read_batches(batches, decoder), names))


def find_dataset(source: str, split: str) -> Any:
    """Fetch one split of a dataset, or load it from the cache.

    The source is `hub:owner/name`, optionally with `/config` and `@split`, which takes precedence
    over `split`.
    """
    address = ADDRESS.fullmatch(source)
    if address is None:
        raise InputError(f"{source} must be hub:owner/name, hub:owner/name/config or …@split")
    splits = fetch_splits(address["name"], address["config"])
    wanted = (address["split"],) if address["split"] else SPLITS.get(split, (split,))
    for name in wanted:
        if name in splits:
            return splits[name]
    raise InputError(
        f"{source} has no split {wanted[0]}; name one with @: {show_names(list(splits))}"
    )


def fetch_splits(name: str, config: str | None) -> Mapping[str, Any]:
    """Return all splits of a dataset by name."""
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError(
            f"datasets of the Hub can't be read ({error}); {describe_install('datasets')}, or name"
            " a file"
        ) from None
    try:
        splits: Mapping[str, Any] = datasets.load_dataset(name, config)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        cause = str(error).partition("\n")[0]
        raise HubError(f"the dataset {name} can't be fetched: {cause}") from error
    return splits
