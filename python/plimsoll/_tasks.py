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
import sys
import threading
from typing import Any, Callable

from plimsoll._replacing import replace
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

    def __init__(self) -> None:
        self.called: "list[Callable[[], Any]]" = []

    def get_debug(self) -> bool:
        return False

    def call_soon(self, callback: "Callable[[], Any]", *_: Any, **__: Any) -> None:
        self.called.append(callback)


async def _never() -> None:
    pass


async def _awaits(task: Any) -> None:
    await task


async def _awaits_inside(task: Any) -> None:
    await _awaits(task)


class KnownTask:
    """A task that has not begun, by which a recording sees whether tasks are where this Python says, from 3.14 on; or,
    up to 3.13, where they are. It must be closed in the thread that made it."""

    def __init__(self) -> None:
        self._undo: "list[Callable[[], Any]]" = []
        #: The task, its event loop, coroutine and code, who awaits it, its name, and (up to 3.13) facts of callbacks.
        self.facts: "tuple[Any, ...]" = ()
        try:
            self.facts = self._make_facts()
        except Exception:  # whatever takes asyncio's place here: the recording says that it does not know it
            self.close()

    def _make_facts(self) -> "tuple[Any, ...]":
        loop: Any = _NoLoop()
        tells = sys.version_info >= (3, 14)
        task = self._make(_never(), loop)
        awaiter = self._make(_never() if tells else _awaits_inside(task), loop)
        if tells:
            asyncio.future_add_to_awaited_by(task, awaiter)  # type: ignore[attr-defined]
        known = None if tells else self._let_it_await(task, awaiter, loop)
        return (task, loop, task.get_coro(), _never.__code__, awaiter, "one ▲", known)

    def _make(self, coroutine: Any, loop: Any) -> Any:
        self._undo.append(coroutine.close)
        task: Any = asyncio.Task(coroutine, loop=loop, name="one ▲")
        task._log_destroy_pending = False
        return task

    def _let_it_await(self, task: Any, awaiter: Any, loop: Any) -> "tuple[Any, ...]":
        """Up to 3.13: what is known of callbacks, and this thread in the step of the task, so that it seems."""
        loop.called[-1]()
        wakeup = task._callbacks[0][0]
        self._undo.append(functools.partial(task.remove_done_callback, wakeup))
        self._undo.append(functools.partial(asyncio._set_running_loop, asyncio._get_running_loop()))
        asyncio._set_running_loop(loop)
        self._undo.append(functools.partial(asyncio.tasks._leave_task, loop, task))
        asyncio.tasks._enter_task(loop, task)
        current = vars(asyncio.tasks)["_current_tasks"]
        return (awaiter.get_coro(), wakeup, asyncio.Future, asyncio.Task, current, _closures(), functools.partial,
                getattr(getattr(asyncio, "TaskGroup", None), "_on_task_done", None),
                getattr(asyncio.tasks, "_release_waiter", None))

    def close(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()


#: Functions of asyncio.tasks, the callbacks inside them, and what of their closures is the Future that waits.
_CALLBACKS = (("gather", "_done_callback", "outer"), ("_gather", "_done_callback", "outer"),
              ("shield", "_inner_done_callback", "outer"), ("_wait", "_on_completion", "waiter"))


def known_task() -> "KnownTask | None":
    """None for Pythons that do not say where tasks are, nor is it known."""
    tells = sys.version_info >= (3, 14) or "t" not in sys.abiflags
    return KnownTask() if tells else None


def _closures() -> "list[tuple[Any, int]]":
    """Their code objects, and the places of the cells."""
    found = []
    for function, callback, future in _CALLBACKS:
        for code in getattr(getattr(asyncio.tasks, function, None), "__code__", _never.__code__).co_consts:
            if getattr(code, "co_name", "") == callback and future in code.co_freevars:
                found.append((code, code.co_freevars.index(future)))
    return found


def install() -> "list[Callable[[], None]]":
    """Watches tasks being made from now on; the result ends that."""
    owners = [(asyncio.base_events.BaseEventLoop, _make_task), (asyncio, _with_name), (asyncio.tasks, _with_name)]
    if hasattr(asyncio, "TaskGroup"):
        owners.append((asyncio.TaskGroup, _with_name))
    return [replace(owner, "create_task", standin) for owner, standin in owners]
