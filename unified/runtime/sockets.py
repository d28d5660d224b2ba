"""The folder of the sockets by which worker processes hand tensors to the process that waits for them.

Python makes it within the folder of temporary files. The path of a socket may have about a hundred bytes: where
``TMPDIR`` has more than seventy, the workers of a torch DataLoader fail, and who waits for their batches waits forever.
Python 3.14 has its sockets in ``/tmp`` then.
"""

from __future__ import annotations

import os
import tempfile
from multiprocessing import util

from unified.errors import UnifiedError

#: Bytes that the path of a socket may have on every system; on Linux it is four more.
_MOST = 103
#: Python puts names of this length behind the folder of temporary files.
_NAMES = "/pymp-12345678/listener-12345678"
_SHORT = "/tmp"


def place_sockets() -> None:
    """Lets sockets of this process, and of those that it starts, lie in ``/tmp`` where ``TMPDIR`` is too long for them.

    Other temporary files stay in ``TMPDIR``. Call it before workers are started; more calls change nothing.

    Raises:
        UnifiedError: ``TMPDIR`` is too long, and nothing can be written into ``/tmp``.
    """
    folder = tempfile.gettempdir()
    size = len(os.fsencode(folder))
    if size + len(_NAMES) <= _MOST:
        return
    tempfile.tempdir = _SHORT
    try:
        util.get_temp_dir()  # makes the folder, once, and removes it when this process ends
    except OSError as error:
        raise UnifiedError(
            f"TMPDIR, {folder}, has {size} bytes: too many for sockets of worker processes, and {_SHORT} cannot be "
            f"written ({error.strerror}); set TMPDIR to a folder of at most {_MOST - len(_NAMES)} bytes, or use no "
            "worker processes"
        ) from None
    finally:
        tempfile.tempdir = folder
