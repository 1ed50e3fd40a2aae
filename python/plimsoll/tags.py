"""Tags: words that a program puts on what it does, as a dimension of its samples.

::

    with plimsoll.tag(request="GET /tea", user=42):
        serve()

    @plimsoll.tag(job="index")
    async def index(): ...

``plimsoll show app.plim tags`` tells how much time went into each; ``--tag request=GET*`` selects.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, Generator, TypeVar

from plimsoll import _core

if TYPE_CHECKING:
    F = TypeVar("F", bound=Callable[..., Any])
    Self = TypeVar("Self", bound="tag")


class tag(_core.Tag):
    """A context manager and a decorator: while it is entered, samples have its names and values.

    Tags are kept in a context variable (:mod:`contextvars`): each thread and each asyncio task has its own, and a task
    inherits those that hold where it is made. They nest; of two with one name the inner one holds. Values are made
    texts with ``str`` when the tag is made. It costs about a microsecond, whether anything is recorded or not; a
    recording that begins later knows of the tags that hold already.

    An object may be entered any number of times, also by several threads and tasks at once.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        def __init__(self, **tags: object) -> None: ...
        def __enter__(self: Self) -> Self: ...

    def __call__(self, function: F) -> F:
        """The function with this tag on each call; of a coroutine function or a generator function, on what it runs."""
        if inspect.isasyncgenfunction(function):
            raise TypeError("an asynchronous generator cannot be tagged as a whole: its consumer runs between its "
                            "steps; use 'with plimsoll.tag(...)' around what it does")
        # (@classmethod and @staticmethod stand above the tag; the latter is callable from 3.10 on.)
        if not inspect.isroutine(function) or not callable(function) or isinstance(function, staticmethod):
            raise TypeError(f"a function can be tagged, not {function!r}")
        wrapper: Callable[..., Any]
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)
        elif inspect.isgeneratorfunction(function):
            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                return (yield from _steps(self, function(*args, **kwargs)))
        else:
            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return function(*args, **kwargs)
        return wrapper  # type: ignore[return-value]


def _steps(of: tag, generator: "Generator[Any, Any, Any]") -> "Generator[Any, Any, Any]":
    """The generator, with the tag on its steps but not on what its consumer does between them."""
    step: Callable[[], Any] = functools.partial(next, generator)
    while True:
        with of:
            try:
                value = step()
            except StopIteration as end:
                return end.value
        try:
            step = functools.partial(generator.send, (yield value))
        except GeneratorExit:
            with of:
                generator.close()
            raise
        except BaseException as error:
            step = functools.partial(generator.throw, error)
