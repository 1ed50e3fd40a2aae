"""The interfaces of other profilers: :mod:`plimsoll.compat.vmprof` and :mod:`plimsoll.compat.spprof`."""

from __future__ import annotations

import sys


def install_as_vmprof() -> None:
    """From now on ``import vmprof`` gives :mod:`plimsoll.compat.vmprof`, and its submodules likewise.

    RuntimeError if another vmprof has been imported already: half of a program would go on using that one.
    """
    from plimsoll.compat import vmprof

    imported = sys.modules.get("vmprof", vmprof)
    if imported is not vmprof:
        raise RuntimeError(f"another vmprof has been imported already, from {getattr(imported, '__file__', '?')}: "
                           "call install_as_vmprof() before the first import of vmprof")
    sys.modules["vmprof"] = vmprof
    for name in ("profiler", "reader", "stats"):
        sys.modules[f"vmprof.{name}"] = sys.modules[f"{vmprof.__name__}.{name}"]
    if "_vmprof" not in sys.builtin_module_names:  # PyPy has one, which records
        sys.modules["_vmprof"] = vmprof
