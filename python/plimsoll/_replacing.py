"""Functions of others that are replaced for a while."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own would have to import typing
if TYPE_CHECKING:
    from typing import Any, Callable


def replace(owner: Any, name: str, standin: Callable[[Any], Any]) -> Callable[[], None]:
    """Puts ``standin(original)`` in the place of a module's or a class's attribute, if it has it; the result puts the
    original back. What others have put over it meanwhile stays, and so does the stand-in below: it is called without a
    recording then."""
    original = vars(owner).get(name)
    if original is None:
        return lambda: None
    ours = standin(original)
    setattr(owner, name, ours)

    def put_back() -> None:
        if vars(owner).get(name) is ours:
            setattr(owner, name, original)

    return put_back
