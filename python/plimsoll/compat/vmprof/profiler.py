"""vmprof's Profiler: records ``with`` blocks and reads what was recorded."""

from __future__ import annotations

import os
import sys
import tempfile
import zlib
from typing import Any, Optional, Union

from plimsoll.compat import vmprof
from plimsoll.compat.vmprof import reader
from plimsoll.compat.vmprof.stats import Stats

_MOST_UNPACKED = 4 << 30


class VMProfError(Exception):
    """Statistics were asked for before there were any."""


class ProfilerContext:
    """One recording."""

    def __init__(self, name: Optional[str], period: float, memory: bool, native: Optional[bool], real_time: bool,
                 lines: bool) -> None:
        self.done = False
        self.tmpfile: Any = (tempfile.NamedTemporaryFile("w+b", delete=False) if name is None
                             else open(name, "w+b"))
        self.filename = self.tmpfile.name
        self._options: dict[str, Any] = dict(period=period, memory=memory, native=native, real_time=real_time,
                                             lines=lines)

    def __enter__(self) -> None:
        vmprof.enable(self.tmpfile.fileno(), **self._options)

    def __exit__(self, *_: Any) -> None:
        vmprof.disable()
        self.tmpfile.close()
        self.done = True


class Profiler:
    """Records blocks::

        profiler = vmprof.Profiler()
        with profiler.measure():
            work()
        profiler.get_stats().get_tree()
    """

    ctx: Optional[ProfilerContext] = None

    def measure(self, name: Optional[str] = None, period: float = 0.001, memory: bool = False,
                native: Optional[bool] = False, real_time: bool = False, lines: bool = False) -> ProfilerContext:
        """For ``with``: records into the file of that name, or into a temporary one, which stays."""
        self.ctx = ProfilerContext(name, period, memory, native, real_time, lines)
        return self.ctx

    def get_stats(self) -> Stats:
        """Of the last block. VMProfError if there was none or it has not ended."""
        if self.ctx is None:
            raise VMProfError("no profiling done")
        if not self.ctx.done:
            raise VMProfError("profiling in process")
        context, self.ctx = self.ctx, None
        return read_profile(context.filename)


def read_profile(prof_file: "Union[str, os.PathLike[str], Any]") -> Stats:
    """The statistics of a file, by its path or open for reading: vmprof's, of any version, or any other that ``plimsoll
    show`` reads. ValueError if it is no profile."""
    if hasattr(prof_file, "read"):
        data = prof_file.read()
    else:
        with open(os.fspath(prof_file), "rb") as file:
            data = file.read()
    if data[:2] == b"\x1f\x8b":
        data = _unpacked(data)
    try:
        state = reader.read(data)
    except reader.OtherFormat:
        state = reader.read(_converted_file(prof_file) if not hasattr(prof_file, "read") else _converted(data))
    return Stats(state.profiles, dict(state.virtual_ips), {}, interp=state.interp_name, meta=state.meta,
                 start_time=state.start_time, end_time=state.end_time, state=state)


def _unpacked(data: bytes) -> bytes:
    """What is gzipped there, as far as it goes. ValueError if that is nothing, or too much."""
    unpacker = zlib.decompressobj(wbits=31)
    parts, size = [], 0
    try:
        while data and not unpacker.eof:
            parts.append(unpacker.decompress(data, 1 << 20))
            size += len(parts[-1])
            if size > _MOST_UNPACKED:
                raise ValueError("a gzipped file of more than 4 GiB")
            data = unpacker.unconsumed_tail
    except zlib.error as error:
        if not size:
            raise ValueError(f"a damaged gzip file: {error}") from None
    return b"".join(parts)


def _converted_file(path: "Union[str, os.PathLike[str]]") -> bytes:
    """A profile in any format, in vmprof's. ValueError if it is none."""
    if sys.implementation.name != "pypy":
        from plimsoll import _core

        return bytes(_core.ProfileData.open(os.fspath(path)).convert(format="vmprof", path=""))
    import subprocess

    from plimsoll import _program

    words = [_program.find(), "convert", os.fspath(path), "-f", "vmprof", "-o", "-"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise ValueError(done.stderr.decode("utf-8", "replace").strip())
    return done.stdout


def _converted(data: bytes) -> bytes:
    descriptor, path = tempfile.mkstemp(prefix="plimsoll-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        return _converted_file(path)
    finally:
        os.unlink(path)
