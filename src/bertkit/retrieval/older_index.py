"""Index folders of earlier versions, whose place a file takes now."""

import re
from pathlib import Path

from bertkit.base.errors import SettingsError, storage_errors
from bertkit.base.files import remove_folder
from bertkit.base.progress import announce

# All that an earlier version wrote into such a folder, and what tells it, finished or not.
OWN_FILES = re.compile(
    r"\.lock|cells|(index\.json|vectors\.npy(\.unfinished)?(\.json)?|(texts|ids)\.bin"
    r"|(text_ends|id_ends|rows|cells/(centers|ranges|sizes|rows|codes))\.npy)(\.partial)?"
)
FINISHED = {"vectors.npy", "texts.bin", "text_ends.npy"}
UNFINISHED = {"vectors.npy.unfinished.json", "texts.bin.partial"}


def remove_older_index(place: Path) -> None:
    """Remove the folder of an earlier version where the file of an index is to stand, and say so.

    Raises:
        SettingsError: it is a folder with other files.
        StorageError: it can't be read or removed.
    """
    if not place.is_dir():
        return
    with storage_errors(place, "read"):
        names = {path.name for path in place.iterdir()}
        is_index = names >= FINISHED or names >= UNFINISHED
        if is_index:  # before a whole home folder is walked
            names = {path.relative_to(place).as_posix() for path in place.rglob("*")}
    if not is_index or not all(map(OWN_FILES.fullmatch, names)):
        raise SettingsError(
            f"{place} is a folder with other files, and an index is one file; name another place"
        )
    announce(f"{place} is an index of an older form; it is made anew, as one file")
    remove_folder(place)
