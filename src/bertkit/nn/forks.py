"""Whether a process was forked too late to compute: torch's threads don't survive that."""

import os

import torch

from bertkit.base.errors import ForkError


class Computing:
    """Whether models have computed in this process, and in its parent before the fork."""

    def __init__(self) -> None:
        self.has_begun = False
        self.lacks_threads = False

    def begin(self) -> None:
        """Note that a model computes, or refuse it where torch would wait for lost threads forever.

        Raises:
            ForkError: a model had computed before this process was forked.
        """
        if self.lacks_threads and torch.get_num_threads() > 1:
            raise ForkError(
                "this process was forked after its parent had used a model, and torch's threads"
                " don't survive that; load models before the fork but use them only after it, or"
                ' start the process by "spawn", or call torch.set_num_threads(1) in it first'
            )
        self.has_begun = True

    def note_fork(self) -> None:
        """Note that this process is the child of a fork."""
        self.lacks_threads = self.has_begun


COMPUTING = Computing()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=COMPUTING.note_fork)
