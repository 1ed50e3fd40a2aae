"""Code whose lines are hard to tell, over and over: lines.py [SECONDS]

Prints, for each place that called leaf(): the function, and the line that CPython itself says it was on.
"""

import json
import sys

import oracle


def leaf():
    x = 0
    for i in range(40):
        x += i
    return x


def several_lines():
    first = leaf()
    total = (
        leaf()
        + leaf() *
        leaf()
    )
    return max(
        first,
        leaf(),
        total)


def loops():
    for i in range(3):
        leaf()
    else:
        leaf()
    n = 3
    while leaf() and n:
        n -= 1
        if n == 1:
            continue
        leaf()


def comprehensions():
    return ([leaf()
             for i in range(3)
             if leaf()],
            {i: leaf() for i in range(2)},
            sum(leaf()
                for i in range(2)))


def deco(function):
    leaf()
    return function


def decorators():
    @deco
    @deco
    def decorated(
        default=leaf(),
    ):
        return leaf()

    return decorated()


def finallies():
    try:
        try:
            leaf()
            raise KeyError
        except KeyError:
            leaf()
            raise ValueError
        else:
            leaf()
        finally:
            leaf()
    except (ValueError,
            TypeError):
        return leaf()
    finally:
        leaf()


class Manager:
    def __enter__(self):
        return leaf()

    def __exit__(self, *_):
        leaf()
        return True


def withs():
    with Manager() as a, \
         Manager() as b:
        leaf()
    with Manager():
        leaf()
        raise ValueError(a, b)


def lambdas():
    call = lambda: leaf()  # noqa: E731
    both = (lambda:
            leaf() +
            call())
    return both()


def conditions(value=3):
    if (leaf() and
            leaf()):
        leaf()
    elif leaf():
        leaf()
    text = f"{leaf()} and {leaf()}" if value else "none"
    assert leaf(), text
    return leaf() if leaf() else \
        leaf()


def far_apart():
    leaf()



























































































































































    return (leaf(),

            # a gap


            leaf())


def main():
    class Body:
        value = leaf()
        values = [leaf(),
                  leaf()]

    for function in FUNCTIONS:
        function()
    return Body


FUNCTIONS = [several_lines, loops, comprehensions, decorators, finallies, withs, lambdas, conditions, far_apart]

if __name__ == "__main__":
    facts = oracle.Oracle(main).learn().facts()
    oracle.repeat(main, float(sys.argv[1]) if sys.argv[1:] else 1.0)
    print(json.dumps({"file": __file__, "scenarios": [facts]}))
