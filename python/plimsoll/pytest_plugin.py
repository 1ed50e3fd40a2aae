"""A pytest plugin: ``pytest --plimsoll`` records the session, with ``--plimsoll-per test`` every test by itself.

Profiles go into ``.plimsoll/`` (``--plimsoll-dir``): ``session.plim``, or one file per test, named after it. With
pytest-xdist each worker has files of its own. ``--plimsoll-limits`` lets tests fail that have more memory in use, or
leave more behind, than their markers ``limit_memory`` and ``limit_leaks`` say. The plugin costs nothing unless it is
asked for.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from typing import TYPE_CHECKING, Any, Generator, Optional

if TYPE_CHECKING:
    import pytest

_LONGEST_NAME = 120  # bytes
_LIMITS = {
    "limit_memory": "limit_memory(size): with --plimsoll-limits the test fails if its call has more memory in use at a "
                    "time, of all that it allocates",
    "limit_leaks": "limit_leaks(size, warmups=0): with --plimsoll-limits the test fails if its call leaves more memory "
                   "behind; it is called so many times before",
}


def file_name(nodeid: str) -> str:
    """A file's name for a test: ``tests/test_a.py::test_b`` is ``tests-test_a.py-test_b``.

    Two tests never share one: a name that says less than the test's own, as with parameters, ends with a checksum.
    """
    plain = re.sub(r"[^\w.\[\]=+-]+", "-", nodeid).strip("-.")
    if re.fullmatch(r"\w[\w./]*(::\w+)*", nodeid, re.ASCII) and len(plain) <= _LONGEST_NAME:
        return plain
    cut = plain.encode("utf-8", "replace")[:_LONGEST_NAME].decode("utf-8", "ignore")
    checksum = hashlib.sha256(nodeid.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{cut}-{checksum}"


def pytest_addoption(parser: "pytest.Parser") -> None:
    group = parser.getgroup("plimsoll", "profiling with Plimsoll")
    group.addoption("--plimsoll", action="store_true", help="record a profile of the tests")
    group.addoption("--plimsoll-per", default="session", choices=("session", "test"), help="for all, or each")
    group.addoption("--plimsoll-dir", default=".plimsoll", metavar="DIR", help="where profiles go (.plimsoll)")
    group.addoption("--plimsoll-mode", default="cpu", choices=("cpu", "wall", "gil"), help="which time is recorded")
    group.addoption("--plimsoll-rate", type=float, default=1000.0, metavar="HZ", help="samples per second (1000)")
    group.addoption("--plimsoll-alloc", metavar="BYTES", help="record allocations, too: a sample in so many bytes on "
                    "average (512K, say), or all of them (exact)")
    group.addoption("--plimsoll-limits", action="store_true", help="hold tests to their limits of memory: "
                    "@pytest.mark.limit_memory('24 MB'), @pytest.mark.limit_leaks('1 MB')")


def pytest_configure(config: "pytest.Config") -> None:
    for marker in _LIMITS.values():
        config.addinivalue_line("markers", marker)
    has_limits = config.getoption("--plimsoll-limits")
    if has_limits and config.getoption("--plimsoll") and config.getoption("--plimsoll-per") == "session":
        raise _usage_error("--plimsoll-limits records tests one by one: give --plimsoll-per test, or no --plimsoll")
    if not has_limits and not config.getoption("--plimsoll"):
        return
    recorder = Recorder(config)
    config.pluginmanager.register(recorder, "plimsoll-recorder")
    if has_limits:
        from plimsoll.pytest_limits import LimitKeeper

        config.pluginmanager.register(LimitKeeper(recorder), "plimsoll-limits")


def _usage_error(text: str) -> Exception:
    import pytest

    error: Exception = pytest.UsageError(text)
    return error


def _allocation_options(asked: "Optional[str]") -> "dict[str, Any]":
    """What the Profiler is told of an option's value. UsageError if it is none."""
    if asked is None:
        return {}
    if asked == "exact":
        return {"alloc_exact": True}
    from plimsoll.pytest_limits import bytes_of

    try:
        return {"alloc_bytes": bytes_of(asked)}
    except ValueError as error:
        raise _usage_error(f"--plimsoll-alloc: {error}; or exact") from None


class Recorder:
    """Records while tests run. Registered only with ``--plimsoll`` or ``--plimsoll-limits``."""

    def __init__(self, config: "pytest.Config") -> None:
        self._per_test = config.getoption("--plimsoll-per") == "test"
        self._has_limits = bool(config.getoption("--plimsoll-limits"))
        self._directory = str(config.getoption("--plimsoll-dir"))
        self._start = os.getcwd()  # tests may go elsewhere
        #: For the Profiler.
        self.options: "dict[str, Any]" = dict(mode=config.getoption("--plimsoll-mode"),
                                              rate_hz=config.getoption("--plimsoll-rate"),
                                              **_allocation_options(config.getoption("--plimsoll-alloc")))
        self._worker: Optional[str] = os.environ.get("PYTEST_XDIST_WORKER")
        # The controller of pytest-xdist (-n, or --dist with --tx) runs no tests itself, and --collect-only runs none:
        # its empty profile would be written over the last one.
        is_controller = self._worker is None and getattr(config.option, "dist", "no") != "no"
        is_none_asked_for = is_controller or bool(getattr(config.option, "collectonly", False))
        self._is_idle = is_none_asked_for or not config.getoption("--plimsoll")
        self._written: "list[str]" = []
        self._error = ""

    def _shown_path(self, name: str) -> str:
        return os.path.join(self._directory, f"{name}.plim")

    def _path(self, name: str) -> str:
        """Where a profile is written to. OSError if the directory cannot be made."""
        os.makedirs(os.path.join(self._start, self._directory), exist_ok=True)
        return os.path.join(self._start, self._shown_path(name))

    def path_for(self, item: "pytest.Item") -> Optional[str]:
        """Where the profile of one test goes, if it is to be kept. OSError if the directory cannot be made."""
        return None if self._is_idle else self._path(file_name(item.nodeid))

    def has_written(self, item: "pytest.Item") -> None:
        """Another one has recorded a test, into path_for() it."""
        if not self._is_idle:
            self._written.append(self._shown_path(file_name(item.nodeid)))

    def _record(self, name: str) -> "Generator[None, Any, None]":
        import plimsoll

        shown = self._shown_path(name)
        profiler = None
        try:
            profiler = plimsoll.Profiler(self._path(name), **self.options).start()
        except (OSError, ValueError, plimsoll.UnsupportedError) as error:
            self._error = str(error)  # the tests run all the same; said once, at the end
        process = os.getpid()
        yield
        if profiler is None or os.getpid() != process:  # the child of a test that forks has no part in it
            return
        if profiler.is_active:
            profiler._end()
            self._error = profiler.statistics.error or self._error  # a full disk, for example
        else:
            self._error = f"a test has ended the recording {shown}: what came after that is not in it"
        self._written.append(shown)

    def pytest_runtestloop(self) -> "Generator[None, Any, None]":
        if self._per_test or self._is_idle:
            yield
        else:
            yield from self._record("session" if self._worker is None else f"session-{self._worker}")

    def pytest_runtest_protocol(self, item: "pytest.Item") -> "Generator[None, Any, None]":
        if self._per_test and not self._is_idle and not self._is_limited(item):
            yield from self._record(file_name(item.nodeid))
        else:
            yield

    def _is_limited(self, item: "pytest.Item") -> bool:
        """Whether a LimitKeeper records it."""
        return self._has_limits and any(item.get_closest_marker(name) is not None for name in _LIMITS)

    def pytest_sessionfinish(self, session: Any) -> None:
        """A worker of pytest-xdist tells its controller, which has the terminal."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["plimsoll_written"], output["plimsoll_error"] = self._written, self._error

    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", {})  # none if the worker has crashed
        self._written += output.get("plimsoll_written", [])
        self._error = self._error or output.get("plimsoll_error", "")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._error:
            terminalreporter.write_line(f"plimsoll: not everything was profiled: {self._error}")
        if len(self._written) == 1:
            terminalreporter.write_line(f"plimsoll: wrote {self._written[0]}; next: plimsoll show "
                                        f"{shlex.quote(self._written[0])}")
        elif self._written:
            terminalreporter.write_line(f"plimsoll: wrote {len(self._written)} profiles into {self._directory}; "
                                        f"for example: plimsoll show {shlex.quote(self._written[0])}")


def _mark_wrappers() -> None:
    """pytest is imported by whoever loads this module as a plugin; nobody else needs it."""
    import pytest

    for hook in (Recorder.pytest_runtestloop, Recorder.pytest_runtest_protocol):
        pytest.hookimpl(hookwrapper=True)(hook)
    pytest.hookimpl(optionalhook=True)(Recorder.pytest_testnodedown)


_mark_wrappers()
