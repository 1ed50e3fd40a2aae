#!/usr/bin/env python3
"""Prints what failed tests said, from a JUnit file of ctest: last, where the end of a log is all that is kept of it.

    tools/show_failures.py build/release/tests.xml
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree

LONGEST = 4000  # characters of a test, its last ones


def main() -> None:
    for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
        if case.get("status") != "fail":
            continue
        print(f"=== failed: {case.get('name')}")
        print((case.findtext("system-out") or "").strip()[-LONGEST:])


if __name__ == "__main__":
    main()
