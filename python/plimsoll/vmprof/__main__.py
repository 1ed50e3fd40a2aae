"""``python -m plimsoll.vmprof [options] program``: ``python -m vmprof``, recorded by ``plimsoll run``."""

from __future__ import annotations

import argparse
import configparser
import os
import signal
import subprocess
import sys
import tempfile
from typing import Any, BinaryIO, Optional

from plimsoll import _program, upload
from plimsoll.compat.vmprof import DEFAULT_PERIOD, writing

_MOST_HZ = 100000
_TYPES = {"period": float, "web": bool, "mem": bool, "web_auth": str, "web_url": str, "output": str, "no_native": bool}


def _period(text: str) -> float:
    period = float(text)
    if not 1e-6 <= period < 1:
        raise argparse.ArgumentTypeError(f"{text}: a period is at least 0.000001 and less than 1 second")
    return period


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.vmprof",
        description="Records a Python program as vmprof does, and shows where its time went; with -o or --web a file "
        "in vmprof's format is written or uploaded instead.",
        epilog="example: python -m plimsoll.vmprof --lines -o app.prof app.py --port 80")
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module's name")
    parser.add_argument("program")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="the program's own")
    parser.add_argument("--config", metavar="FILE", help="read options from the section [global] of this file")
    parser.add_argument("--period", "-p", type=_period, default=DEFAULT_PERIOD, metavar="SECONDS",
                        help=f"time between samples; {DEFAULT_PERIOD} by default")
    parser.add_argument("--mem", action="store_true", help="the memory in use with each sample")
    parser.add_argument("--lines", action="store_true", help="the current line of each frame")
    parser.add_argument("--jitlog", action="store_true", help="PyPy: what its JIT does, too, into FILE.jit")
    parser.add_argument("--no-native", "-n", action="store_true", help="no native frames")
    parser.add_argument("--web-url", metavar="URL", help="the server for --web; vmprof.com, which vmprof took, is gone")
    parser.add_argument("--web-auth", metavar="TOKEN", help="your token there")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--web", action="store_true", help="upload the profile to a vmprof server")
    where.add_argument("--output", "-o", metavar="FILE", help="write the profile to this file")
    return parser


def _ini_value(section: configparser.SectionProxy, name: str) -> Any:
    """ValueError if it is none of its type. vmprof takes any text for a yes that is given for "web"."""
    key = name.replace("_", "-")
    if _TYPES[name] is bool:
        try:
            return section.getboolean(key)
        except ValueError:
            if name == "web":
                return bool(section[key])
            raise
    return _period(section[key]) if name == "period" else section[key]


def parse(words: "list[str]") -> argparse.Namespace:
    """The options of the command line, and of the file that it names for those that it leaves at their defaults."""
    parser = _parser()
    options = parser.parse_args(words)
    if options.config is not None:
        _read_config(options, parser)
    if options.web and options.output:
        parser.error("--web and --output exclude each other")
    if options.web and not options.web_url:
        parser.error("--web: which server? say --web-url URL")
    options.jitlog = options.jitlog and sys.implementation.name == "pypy"  # as vmprof, without a word
    return options


def _read_config(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    ini = configparser.ConfigParser()
    try:
        with open(options.config, encoding="utf-8") as file:
            ini.read_file(file)
        section = ini["global"]
        for name in _TYPES:
            if name.replace("_", "-") in section and getattr(options, name) == parser.get_default(name):
                setattr(options, name, _ini_value(section, name))
    except KeyError:
        parser.error(f"{options.config}: no section [global]")
    except (OSError, ValueError, configparser.Error, argparse.ArgumentTypeError) as error:
        parser.error(f"{options.config}: {error}")


def _wants_native(options: argparse.Namespace) -> bool:
    """Unless it is said otherwise, where they can be recorded: as vmprof."""
    if options.no_native or sys.implementation.name == "pypy":
        return False
    from plimsoll import _core

    return not _core.native_unsupported()


def _run(options: argparse.Namespace, plim: str) -> int:
    """Runs the program under ``plimsoll run``; its exit code, negative for a signal that has ended it."""
    words = [_program.find_or_exit(), "run", "--quiet", "--python", sys.executable, "-f", "plim", "-o", plim,
             "-r", repr(min(1 / options.period, _MOST_HZ))]
    words += ["--mem"] if options.mem else []
    words += ["--native"] if _wants_native(options) else []
    words += ["--jitlog"] if options.jitlog else []
    words += ["-m"] if options.module else []
    if 1 / options.period > _MOST_HZ:
        print(f"plimsoll: a period of {options.period:.6f} s is too short: it is {1 / _MOST_HZ:.6f} s", file=sys.stderr)
    program = subprocess.Popen([*words, options.program, *options.args])

    def pass_on(number: int, _: object) -> None:
        if number != signal.SIGINT:  # which the terminal sends to all
            program.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, pass_on)
    return program.wait()


def _write_prof(plim: str, file: BinaryIO, *, lines: bool, memory: bool) -> None:
    """Converts a recording into vmprof's format. OSError or CalledProcessError if that fails."""
    words = [_program.find_or_exit(), "convert", plim, "-f", "vmprof", "--fold-native", "-o", "-"]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    file.write(writing.rewrite(done.stdout, writing.Wish(lines=lines, memory=memory)))


def _write_jitlog(plim: str, path: str) -> None:
    """Takes the jitlog out of a recording. CalledProcessError if there is none."""
    with open(path, "wb") as file:
        subprocess.run([_program.find_or_exit(), "jitlog", plim, "--raw"], stdout=file, check=True)


def _opened(path: str) -> BinaryIO:
    """The file for the profile, so that one that cannot be written is told of before the program runs. What is in it
    stays there until there is a profile."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    return os.fdopen(descriptor, "r+b")


def _finish(options: argparse.Namespace, plim: str, output: Optional[BinaryIO]) -> None:
    wanted = dict(lines=options.lines, memory=options.mem)
    if output is not None:
        with output:
            if os.path.isfile(options.output):
                output.truncate()
            _write_prof(plim, output, **wanted)
        if options.jitlog:
            _write_jitlog(plim, options.output + ".jit")
    elif options.web:
        prof = plim + ".prof"
        with open(prof, "wb") as file:
            _write_prof(plim, file, **wanted)
        if options.jitlog:
            _write_jitlog(plim, prof + ".jit")
        argv = " ".join([options.program, *options.args])
        upload.upload(prof, url=options.web_url, token=options.web_auth, argv=argv)
    else:
        subprocess.run([_program.find_or_exit(), "show", plim, "flat", "--sort", "total"])


def main() -> int:
    options = parse(sys.argv[1:])
    try:
        output = _opened(options.output) if options.output else None
    except OSError as error:
        _parser().error(str(error))
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as directory:
        plim = os.path.join(directory, "recording.plim")
        code = _run(options, plim)
        if os.path.exists(plim):  # else it has been said why
            try:
                _finish(options, plim, output)
            except subprocess.CalledProcessError as error:  # it has said why
                code = code or error.returncode
            except (OSError, upload.UploadError) as error:
                print(f"plimsoll: {error}", file=sys.stderr)
                code = code or 1
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
