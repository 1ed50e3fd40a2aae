"""What a check hands back, and what it is told."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILED = (".cc", ".h")


@dataclass
class Report:
    """The outcome of one check: what fails it, what is only a warning, and one line about what was looked at."""

    summary: str = ""
    failures: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def fail(self, text: str) -> None:
        self.failures.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def judge(self, value: int, limits: tuple[int, int], text: str) -> None:
        """Holds a value against a budget: a warning above the first limit, a failure above the second."""
        if value > limits[1]:
            self.fail(f"{text} (at most {limits[1]})")
        elif value > limits[0]:
            self.warn(f"{text} (better at most {limits[0]})")


@dataclass
class Context:
    """The tree to be checked, the build directory the checks may use, and whether to mend what a machine can mend."""

    build: Path
    jobs: int
    fix: bool = False

    @cached_property
    def files(self) -> list[Path]:
        """Every file of the project, committed or not, relative to the root."""
        listed = run(["git", "ls-files", "--cached", "--others", "--exclude-standard"]).stdout.splitlines()
        return sorted(Path(name) for name in listed if (ROOT / name).is_file())

    def sources(self, *suffixes: str, under: str = "src") -> list[Path]:
        """The project's files below a folder with one of the suffixes."""
        return [path for path in self.files if path.parts[0] == under and path.suffix in (suffixes or COMPILED)]


def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    """Runs a command in the root of the project and keeps its output; never raises for an exit status."""
    settings: dict[str, object] = {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **options}
    return subprocess.run(command, text=True, errors="replace", check=False, **settings)  # type: ignore[call-overload,no-any-return]


def read(path: Path) -> str:
    """A source file's text."""
    return (ROOT / path).read_text(encoding="utf-8")
