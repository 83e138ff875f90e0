"""What a launcher such as torchrun tells each process: its place among the processes of a run."""

import os
from dataclasses import dataclass
from typing import Self

from bertkit.base.errors import SettingsError


@dataclass(frozen=True)
class Launch:
    """The place of this process; alone if no launcher started several.

    Source: "Environment Variables" of torchrun's documentation.
    """

    rank: int = 0  # among all processes
    num_ranks: int = 1
    local_rank: int = 0  # among those of this machine: the number of its GPU

    @classmethod
    def read(cls) -> Self:
        """Read the environment variables that torchrun sets."""
        if os.environ.get("WORLD_SIZE", "1") == "1" or "MASTER_ADDR" not in os.environ:
            return cls()
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        found = [os.environ.get(name, "0") for name in names]
        if not all(map(str.isdecimal, found)):
            shown = ", ".join(map("=".join, zip(names, found, strict=True)))
            raise SettingsError(
                f"expected what torchrun sets, numbers, and the environment has {shown}"
            )
        return cls(*map(int, found))

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and messages for all."""
        return self.rank == 0
