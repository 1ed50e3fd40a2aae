"""Just enough of C++'s shape for the budgets: functions with their lengths, and types with their comments.

Not a parser. It removes comments, literals and preprocessor lines, then follows braces and looks at the text in front
of each: namespace, type, initialiser or function. What that gets wrong would be wrong by a few lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NOISE = re.compile(
    r"""  R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"   # raw string
        | //(?:\\\n|[^\n])* | /\*.*?\*/
        | "(?:\\.|[^"\\\n])*"
        | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'          # not the separator in 1'000
        | ^[ \t]*\#(?:\\\n|[^\n])*                      # preprocessor line, with what continues it""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_ACCESS = re.compile(r"(?:\s*\b(?:public|private|protected)\s*:(?!:))+")
_TYPE = re.compile(r"\s*(?:typedef\s+)?(?P<kind>class|struct|union|enum(?:\s+class)?)\b(?P<rest>[^()=]*)$")
_CONSTRUCTOR_LIST = re.compile(r"\)[\w\s]*:(?!:)")


@dataclass(frozen=True)
class Function:
    """A function's definition, by lines that count from 1."""

    name: str
    first_line: int
    last_line: int

    @property
    def lines(self) -> int:
        return self.last_line - self.first_line + 1


@dataclass(frozen=True)
class Type:
    """A type's definition, with the line on which it, or the template in front of it, begins."""

    name: str
    line: int


def code_only(text: str) -> str:
    """The text with comments, literals and preprocessor lines blanked, every line where it was."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    return _NOISE.sub(blank, text)


def _without_brackets(head: str) -> str:
    """Without template parameter lists, attributes and alignas."""
    head = re.sub(r"\b(?:alignas|__attribute__)\s*\(+[^()]*\)+|\[\[[^\]]*\]\]", " ", head)
    while True:
        shorter = re.sub(r"<[^<>]*>", " ", head)
        if shorter == head:
            return head
        head = shorter


def _kind_of(head: str) -> str:
    """What an opening brace begins, by the text in front of it: open (members follow), enum, initialiser, function."""
    plain = _without_brackets(head)
    if re.search(r"\bnamespace\b", plain) or re.fullmatch(r"\s*extern\s*", plain):
        return "open"
    if found := _TYPE.match(re.sub(r"^\s*template\b", "", plain)):
        return "enum" if found["kind"].startswith("enum") else "open"
    if "(" not in plain:
        return "initialiser"
    outside = re.sub(r"\boperator\s*(?:\(\)|[^\s(]+)", "operator", plain)
    while "(" in outside:
        shorter = re.sub(r"\([^()]*\)", " ", outside)
        if shorter == outside:
            return "initialiser"  # an argument of a call that is still open
        outside = shorter
    if "=" in outside or re.search(r"\bconcept\b", outside):
        return "initialiser"
    if _CONSTRUCTOR_LIST.search(plain) and re.search(r"[\w>]\s*$", head):
        return "initialiser"  # of a member, in front of the constructor's body
    return "function"


def _name_of(head: str) -> str:
    found = re.search(r"([\w:~]+(?:\s*operator\s*\S+)?)\s*\(([^()]*)", _without_brackets(head))
    if found is None:
        return "?"
    return f"{found[1]}({found[2].strip()})" if found[1] in ("TEST", "TEST_F", "TEST_P") else found[1]


def definitions(text: str) -> Iterator[Function | Type]:
    """The functions and types of a file. Functions inside functions are part of them."""
    code = code_only(text)
    scopes: list[tuple[str, int, str]] = []  # kind, where the head begins, head
    head_at = 0
    for match in re.finditer(r"[{};]", code):
        at = match.start()
        inside = scopes[-1][0] if scopes else "open"
        if match[0] == ";":
            head_at = at + 1 if inside == "open" else head_at
            continue
        if match[0] == "{":
            head = code[head_at:at]
            access = _ACCESS.match(head)
            begin = head_at + (access.end() if access else 0)
            begin += len(code[begin:at]) - len(code[begin:at].lstrip())
            kind = _kind_of(code[begin:at]) if inside == "open" else "inner"
            scopes.append((kind, begin, code[begin:at]))
            found = _TYPE.match(re.sub(r"^\s*template\b", "", _without_brackets(scopes[-1][2])))
            if kind in ("open", "enum") and found:
                name = re.match(r"\s*(\w+(?:::\w+)*)?", found["rest"])
                yield Type((name[1] if name else "") or "", code.count("\n", 0, begin) + 1)
            head_at = at + 1 if kind == "open" else head_at
        elif scopes:
            kind, begin, head = scopes.pop()
            if kind == "function":
                yield Function(_name_of(head), code.count("\n", 0, begin) + 1, code.count("\n", 0, at) + 1)
            if kind != "initialiser" and (not scopes or scopes[-1][0] == "open"):
                head_at = at + 1


def has_comment(lines: list[str], line: int) -> bool:
    """Whether a comment stands directly above a line (counted from 1)."""
    above = lines[line - 2].strip() if line >= 2 else ""
    return above.startswith("//") or above.endswith("*/")
