"""Tells asyncio's tasks apart while a recording with ``tasks=True`` is active.

Each task gets two tags in its context when it is made: ``task``, its name or else its coroutine's, and ``task_path``,
the same of the tasks that made it, outermost first. No task is held on to, and nothing happens when tasks are switched:
their contexts are, by asyncio itself (tags.py).
"""

from __future__ import annotations

import asyncio
import asyncio.base_events
import contextvars
import functools
import threading
from typing import Any, Callable

from plimsoll.tags import tag

#: Between the tasks of a path; names that hold it are changed.
SEPARATOR = " / "
_MOST_IN_PATH = 8  # of a chain of tasks that make each other, the first and the last

_path: "contextvars.ContextVar[tuple[str, ...]]" = contextvars.ContextVar("plimsoll.task_path", default=())


class _Pending(threading.local):
    """The name that a task about to be made was given: up to 3.12 the loop is not told of it."""

    name = ""


_pending = _Pending()


def path_below(path: "tuple[str, ...]", name: str) -> "tuple[str, ...]":
    """The path of a task that a task with `path` makes. A task that makes its like counts once."""
    if path[-1:] == (name,):
        return path
    path = (*path, name)
    return path if len(path) <= _MOST_IN_PATH else (path[0], "...", *path[2 - _MOST_IN_PATH:])


def _enter(name: str) -> None:
    """Puts the tags into the context it is called in; they stay for as long as that lives."""
    path = path_below(_path.get(), name)
    _path.set(path)
    tag(task=name, task_path=SEPARATOR.join(path)).__enter__()


def _name_of(coroutine: Any, options: "dict[str, Any]") -> str:
    name = options.get("name") or _pending.name or getattr(coroutine, "__qualname__", type(coroutine).__name__)
    return str(name).replace(SEPARATOR, "/")


def _make_task(original: "Callable[..., Any]") -> "Callable[..., Any]":
    """In place of BaseEventLoop.create_task."""

    @functools.wraps(original)
    def create_task(self: Any, coro: Any, **options: Any) -> Any:
        name = _name_of(coro, options)
        context = options.get("context")
        try:
            if context is None:  # the task copies the context that it is made in
                context = contextvars.copy_context()
                context.run(_enter, name)
                return context.run(original, self, coro, **options)
            context.run(_enter, name)
        except RuntimeError:
            if options.get("context") is None:
                raise
            # A context that somebody is in: whatever runs there keeps the tags that it has.
        return original(self, coro, **options)

    return create_task


def _with_name(original: "Callable[..., Any]") -> "Callable[..., Any]":
    """In place of functions that make a task and name it after."""

    @functools.wraps(original)
    def create_task(*args: Any, **options: Any) -> Any:
        before, _pending.name = _pending.name, options.get("name") or ""
        try:
            return original(*args, **options)
        finally:
            _pending.name = before

    return create_task


class _NoLoop:
    """As much of an event loop as tasks need that never run."""

    def get_debug(self) -> bool:
        return False

    def call_soon(self, *_: Any, **__: Any) -> None:
        pass


async def _never() -> None:
    pass


class KnownTask:
    """A task that has not begun, by which a recording sees whether tasks are where this Python says. From 3.14 on."""

    def __init__(self) -> None:
        loop: Any = _NoLoop()
        self._coroutines = [_never(), _never()]
        self._tasks: "list[Any]" = [asyncio.Task(of, loop=loop, name="one ▲") for of in self._coroutines]
        for task in self._tasks:
            task._log_destroy_pending = False
        asyncio.future_add_to_awaited_by(*self._tasks)  # type: ignore[attr-defined]
        #: The task, its event loop, coroutine and code, who awaits it, and its name.
        self.facts = (self._tasks[0], loop, self._coroutines[0], _never.__code__, self._tasks[1], "one ▲")

    def close(self) -> None:
        for coroutine in self._coroutines:
            coroutine.close()


def install() -> "list[Callable[[], None]]":
    """Watches tasks being made from now on; the result ends that."""
    undo: "list[Callable[[], None]]" = []

    def replace(owner: Any, wrap: "Callable[..., Any]") -> None:
        original = vars(owner)["create_task"]
        owner.create_task = wrap(original)
        undo.append(functools.partial(setattr, owner, "create_task", original))

    replace(asyncio.base_events.BaseEventLoop, _make_task)
    replace(asyncio, _with_name)
    replace(asyncio.tasks, _with_name)
    if hasattr(asyncio, "TaskGroup"):
        replace(asyncio.TaskGroup, _with_name)
    return undo
