"""Archives of uncompressed records with checksums: torch's checkpoints and numpy's files of several arrays."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path

from unified.errors import UnifiedError


def check_stored(path: Path, what: str) -> None:
    """Read the checksums of all records of a zip archive, which neither torch nor numpy compares with the data.

    Records are as large as they say: none is compressed, and all together are no larger than the file.

    Args:
        what: the file should be, for messages, such as "a checkpoint".

    Raises:
        UnifiedError: it is no such archive, or a damaged one, or records are compressed.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            records = archive.infolist()
            packed = next((one.filename for one in records if one.compress_type != zipfile.ZIP_STORED), None)
            if packed is not None:
                raise UnifiedError(f"{path}: not {what}: the record {packed!r} inside it is compressed")
            if sum(max(one.file_size, one.compress_size) for one in records) > os.path.getsize(path):
                raise UnifiedError(f"{path}: not {what}: its records say that they are larger than the file")
            damaged = archive.testzip()
    except UnifiedError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnifiedError(f"{path}: not {what}, or a truncated or damaged one ({reason})") from None
    if damaged is not None:
        raise UnifiedError(f"{path}: damaged, the checksum of {damaged!r} inside it does not fit")
