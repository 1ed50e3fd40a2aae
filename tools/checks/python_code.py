"""Python: everything compiles, the package is typed strictly, and ruff finds nothing. Rules stand in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

from checks.build import environment
from checks.report import ROOT, Context, Report, run


def compiles(context: Context, report: Report) -> int:
    """Every Python file is syntactically right; how many there are."""
    files = [path for path in context.files if path.suffix == ".py"]
    for path in files:
        try:
            compile((ROOT / path).read_bytes(), str(path), "exec", dont_inherit=True)
        except SyntaxError as error:
            report.fail(f"{path}:{error.lineno}: {error.msg}")
    return len(files)


def check_python(context: Context) -> Report:
    report = Report()
    count = compiles(context, report)
    python = str(environment(context))
    cache = context.build
    tools = {
        "mypy": ["mypy", "--strict", f"--cache-dir={cache / 'mypy'}", "python/plimsoll"],
        "ruff": ["ruff", "check", "--quiet", "--output-format=concise", f"--cache-dir={cache / 'ruff'}", "."],
    }
    for name, arguments in tools.items():
        if not (Path(python).parent / name).exists():
            report.warn(f"not checked by {name}: it could not be installed")
            continue
        result = run([python, "-m", *arguments])
        found = [line for line in result.stdout.splitlines() if ": error:" in line or (name == "ruff" and line)]
        for line in found if result.returncode != 0 else []:
            report.fail(f"{name}: {line}")
        if result.returncode != 0 and not found:
            report.fail(f"{name}: {result.stdout.strip()[-400:]}")
    report.summary = f"{count} files; mypy --strict and ruff"
    return report
