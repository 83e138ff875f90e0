"""The Hub's file list of a model: names, sizes and hashes at one commit."""

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import BaseModel, Field, NonNegativeInt, ValidationError

from bertkit.base.errors import HubError, UnsafeFileError
from bertkit.checkpoints.hub.client import listing_url, read_answer

LISTING_LIMIT_BYTES = 16 << 20  # a model card and 1,000 files take less than one MiB
MAX_FILES = 1_000  # the largest encoders have a few dozen

COMMIT_PATTERN = r"^[0-9a-f]{40}$"


class LargeFile(BaseModel, frozen=True):
    """Size and hash of a file that is stored outside git (LFS)."""

    size: NonNegativeInt
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class HubFile(BaseModel, frozen=True):
    """One file of a model.

    Attributes:
        name: relative path with `/`; not validated here.
        git_sha1: of the git object, which is only a pointer for a large file.
        git_size: of the git object, in bytes.
        large: size and hash if the file is stored outside git.
    """

    name: str = Field(alias="rfilename")
    git_sha1: Annotated[str, Field(alias="blobId", pattern=COMMIT_PATTERN)]
    git_size: Annotated[NonNegativeInt, Field(alias="size")]
    large: Annotated[LargeFile | None, Field(alias="lfs")] = None

    @property
    def size_bytes(self) -> int:
        """Size of the file in bytes."""
        return self.large.size if self.large else self.git_size

    @property
    def digest(self) -> str:
        """Hash of the content: SHA-256 for a large file, SHA-1 of the git object otherwise."""
        return self.large.sha256 if self.large else self.git_sha1


class Listing(BaseModel, frozen=True):
    """The files of a model at one commit."""

    commit: Annotated[str, Field(alias="sha", pattern=COMMIT_PATTERN)]
    files: Annotated[tuple[HubFile, ...], Field(alias="siblings")]


def fetch_listing(model_id: str, revision: str) -> Listing:
    """Request the file list of a model.

    Args:
        model_id: already validated.
        revision: a branch, a tag or a commit.
    """
    answer = read_answer(listing_url(model_id, revision), model_id, limit_bytes=LISTING_LIMIT_BYTES)
    try:
        listing = Listing.model_validate_json(answer)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise HubError(
            f"the Hub's list of the files of {model_id} isn't one ({place}: {first['msg']});"
            " expected names, sizes and hashes; is HF_ENDPOINT a Hub?"
        ) from None
    if len(listing.files) > MAX_FILES:
        raise UnsafeFileError(
            f"{model_id} has {len(listing.files):,} files, and at most {MAX_FILES:,} are taken;"
            " fetch those that you want by hand, and name their folder"
        )
    for file in listing.files:
        path = PurePosixPath(file.name)
        if path.is_absolute() or ".." in path.parts:
            raise UnsafeFileError(
                f"{model_id} has a file named {file.name[:80]!r}, which leads out of its folder;"
                " no honest model has one"
            )
    return listing
