"""Assembled kernels and results of tuning on disk: an entry is found whole or not at all.

Entries are files named by a hash of their key.  Each is written beside its place and renamed into it, and says its key
and the hash of what it holds: one that is cut off, foreign or of another format is taken for none and replaced.  This
process executes nothing of them; machine code is given to the driver, so the directory is made for its owner alone.
No program and no array may enter.

Environment: ``TILELAYOUT_CACHE_DIR`` is the directory, else ``tilelayout`` in ``XDG_CACHE_HOME`` or ``~/.cache``;
``TILELAYOUT_NO_CACHE=1`` turns it off.  A directory that can't be written is no error: everything is made anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...target import Target
from ..assemble import Cubin, assemble
from .assembler_version import assembler_version

_FORMAT = 1
"""Goes into every key: raise it when what an entry holds changes its meaning."""

_MAGIC = b"tilelayout cache\n"


def directory() -> Path | None:
    """Where the cache is; None where there is none.  Nothing is created."""
    if os.environ.get("TILELAYOUT_NO_CACHE", "0") not in ("", "0"):
        return None
    given = os.environ.get("TILELAYOUT_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):  # the XDG specification ignores a relative one
        return Path(base) / "tilelayout"
    try:
        return Path.home() / ".cache" / "tilelayout"
    except RuntimeError:  # no home
        return None


def cached_cubin(ptx: str, target: Target, allow_spills: bool = False) -> Cubin:
    """`assemble`, or what it gave before for the same text, target, assembler and `allow_spills`.

    Errors: as `assemble`; what it refuses is not remembered.
    """
    where = directory()
    if where is None:
        return assemble(ptx, target, allow_spills)
    key = _key("cubin", ptx, target.name, assembler_version(), allow_spills)
    path = where / "cubin" / key[:2] / key
    found = _read(path, key)
    if found is not None:
        with contextlib.suppress(KeyError, TypeError):
            return Cubin(data=found[1], target=target, **found[0])
    made = assemble(ptx, target, allow_spills)
    about = {
        name: getattr(made, name) for name in ("registers", "spill_bytes", "local_bytes", "seconds", "log")
    }
    _write(path, key, about, made.data)
    return made


def entry(kind: str, key: Any) -> tuple[dict[str, Any], bytes] | None:
    """What was kept for a key, which JSON holds: what it says, and its bytes.  None where nothing was."""
    where = directory()
    if where is None:
        return None
    text = _key(kind, json.dumps(key, sort_keys=True))
    return _read(where / kind / text[:2] / text, text)


def keep(kind: str, key: Any, about: dict[str, Any], data: bytes) -> None:
    """Keep bytes, and what JSON holds, for a key; without a cache nothing happens."""
    where = directory()
    if where is not None:
        text = _key(kind, json.dumps(key, sort_keys=True))
        _write(where / kind / text[:2] / text, text, about, data)


class Results:
    """Values by key, on disk: what an autotuner measured.

    Keys and values are what JSON holds (tuples count as lists): a key names the device, the problem and whatever else
    the value depends on.

    >>> import tempfile, os
    >>> os.environ["TILELAYOUT_CACHE_DIR"] = tempfile.mkdtemp()
    >>> results = Results("gemm")
    >>> results.get(("NVIDIA H200", {"M": 4096})) is None
    True
    >>> results.put(("NVIDIA H200", {"M": 4096}), {"stages": 4})
    >>> Results("gemm").get(("NVIDIA H200", {"M": 4096}))
    {'stages': 4}
    >>> _ = os.environ.pop("TILELAYOUT_CACHE_DIR")
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def get(self, key: Any) -> Any:
        """The value of a key; None where there is none."""
        path, text = self._place(key)
        found = path and _read(path, text)
        return found[0].get("value") if found else None

    def put(self, key: Any, value: Any) -> None:
        """Remember a value; without a cache, or where it can't be written, nothing happens.

        Errors: TypeError for a key or value that JSON does not hold.
        """
        path, text = self._place(key)
        json.dumps(value)
        if path:
            _write(path, text, {"value": value}, b"")

    def _place(self, key: Any) -> tuple[Path | None, str]:
        text = _key("results", self.name, json.dumps(key, sort_keys=True))
        where = directory()
        # The name is in the hash too: the folder's is for the reader, and may not lead elsewhere.
        folder = "".join(c if c.isalnum() or c in "-_" else "_" for c in self.name)
        return where and where / "results" / folder / text, text


def _key(*parts: object) -> str:
    """A hash of everything that an entry depends on."""
    return sha256(json.dumps([_FORMAT, *parts]).encode()).hexdigest()


def _read(path: Path, key: str) -> tuple[dict[str, Any], bytes] | None:
    """What an entry says and holds; None for one that is not there or not whole."""
    try:
        text = path.read_bytes()
    except OSError:
        return None
    head, _, rest = text.partition(b"\n")
    about, _, data = rest.partition(b"\n")
    if head + b"\n" != _MAGIC:
        return None
    try:
        said = json.loads(about)
        whole = said["key"] == key and said["sha256"] == _digest(said["about"], data)
        return (dict(said["about"]), data) if whole else None
    except (ValueError, KeyError, TypeError):
        return None


def _write(path: Path, key: str, about: dict[str, Any], data: bytes) -> None:
    """Put an entry in its place, whole; not at all where it can't be written."""
    said = json.dumps({"key": key, "sha256": _digest(about, data), "about": about})
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + said.encode() + b"\n" + data)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise


def _digest(about: Any, data: bytes) -> str:
    return sha256(json.dumps(about, sort_keys=True).encode() + b"\0" + data).hexdigest()
