"""As :mod:`plimsoll.compat.vmprof.recording`, on PyPy, whose own sampler writes the file while the program runs."""

from __future__ import annotations

from typing import Optional

import _vmprof

from plimsoll.compat.vmprof.targets import RealTimeThreads, path_of

NATIVE_BY_DEFAULT = False


class _Core:
    """What is paused and resumed."""

    def pause(self) -> None:
        _vmprof.stop_sampling()

    def resume(self) -> None:
        _vmprof.start_sampling()


class Recording:
    """The one recording."""

    core = _Core()

    def __init__(self, fileno: int, is_real_time: bool) -> None:
        self.fileno = fileno
        self._is_real_time = is_real_time

    @property
    def real_time_threads(self) -> Optional[RealTimeThreads]:
        if self._is_real_time:
            raise NotImplementedError("PyPy does not let threads be chosen for real-time mode")
        return None

    def profile_path(self) -> Optional[str]:
        return path_of(self.fileno)


_active: Optional[Recording] = None


def active() -> Optional[Recording]:
    """The recording that start() began, if stop() has not ended it."""
    return _active


def native_unsupported(real_time: bool) -> str:
    """Why native frames cannot be recorded; empty if they can."""
    return ""


def start(fileno: int, period: float, memory: bool, lines: bool, native: bool, real_time: bool) -> None:
    """Starts recording. ValueError if it is going on."""
    global _active
    if _active is not None or _vmprof.is_enabled():
        raise ValueError("vmprof is already enabled")
    _vmprof.enable(fileno, period, memory, lines, native, real_time)
    _active = Recording(fileno, real_time)


def stop() -> None:
    """Ends the recording, if there is one."""
    global _active
    recording, _active = _active, None
    if recording is not None:
        _vmprof.disable()
