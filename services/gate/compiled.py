"""What took seconds to compile, kept for the next start in the user's cache folder.

Whoever cannot keep anything compiles each time. A file is taken only from a folder that nobody else can write to.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from platformdirs import user_cache_path

FILES_MAX = 16
"""Those that were used last; a set takes two, beside some small ones that every start uses."""


def recall_or_compile(content: bytes, compile_it: Callable[[], bytes]) -> bytes:
    """What `compile_it` made of the same content before, or makes now."""
    file = user_cache_path("lorebus") / "gate" / hashlib.sha256(content).hexdigest()
    compiled = _read(file)
    if compiled is None:
        compiled = compile_it()
        _keep(file, compiled)
    return compiled


def _read(file: Path) -> bytes | None:
    try:
        folder = file.parent.stat()
        if folder.st_uid != os.getuid() or folder.st_mode & 0o022:
            return None
        compiled = file.read_bytes()
        file.touch()  # what is used is not the oldest
        return compiled
    except OSError:
        return None


def _keep(file: Path, compiled: bytes) -> None:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Renamed into place, so that another gate never reads a half.
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as unfinished:
            unfinished.write(compiled)
        Path(unfinished.name).rename(file)
        for old in sorted(file.parent.iterdir(), key=lambda kept: kept.stat().st_mtime)[:-FILES_MAX]:
            old.unlink(missing_ok=True)
    except OSError:
        return
