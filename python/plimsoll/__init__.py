"""Plimsoll: one profiler for time, memory and objects of Python programs.

Record a block, a function, or all that follows, and look at the result::

    import plimsoll

    with plimsoll.profile() as session:
        work()
    print(session.profile.tree())

    @plimsoll.profile(path="parse.plim")
    def parse(): ...

    with plimsoll.tag(request="GET /"):  # a dimension of the samples
        ...

    plimsoll.start("app.plim")
    ...
    profile = plimsoll.stop()

From a shell, ``plimsoll run app.py`` records a whole program; ``plimsoll show app.plim`` shows what it found.

(PYTEST_DONT_REWRITE: under ``plimsoll run pytest`` this is imported before pytest, which would warn that it cannot
rewrite the assertions of a plugin's package any more.)
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own would have to import typing
if TYPE_CHECKING:
    from typing import Any

    from plimsoll.attaching import Attachment as Attachment, attach as attach
    from plimsoll._core import ProfileError as ProfileError, UnsupportedError as UnsupportedError
    from plimsoll.profiles import Profile as Profile, Samples as Samples
    from plimsoll.rows import Function as Function
    from plimsoll.views import Callers as Callers, Flat as Flat, Lines as Lines, Tree as Tree
    from plimsoll.tags import tag as tag
    from plimsoll.profiler import (Profiler as Profiler, Statistics as Statistics, is_active as is_active,
                                   pause as pause, profile as profile, resume as resume, set_rate as set_rate,
                                   start as start, stats as stats, stop as stop)

__all__ = [
    "Attachment", "Callers", "Flat", "Function", "Lines", "Profile", "ProfileError", "Profiler", "Samples",
    "Statistics", "Tree", "UnsupportedError", "attach", "is_active", "pause", "profile", "resume", "set_rate",
    "start", "stats", "stop", "tag",
]

# Names are imported at first use, so that `import plimsoll` costs a program next to nothing.
_HOMES = {
    **dict.fromkeys(("ProfileError", "UnsupportedError"), "plimsoll._core"),
    **dict.fromkeys(("Profile", "Samples"), "plimsoll.profiles"),
    **dict.fromkeys(("Callers", "Flat", "Lines", "Tree"), "plimsoll.views"),
    "Function": "plimsoll.rows",
    **dict.fromkeys(("Profiler", "Statistics", "is_active", "pause", "profile", "resume", "set_rate", "start", "stats",
                     "stop"), "plimsoll.profiler"),
    **dict.fromkeys(("Attachment", "attach"), "plimsoll.attaching"),
    "tag": "plimsoll.tags",
    "load_ipython_extension": "plimsoll.ipython",  # %load_ext plimsoll
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from plimsoll._core import version
        return version
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'plimsoll' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
