"""How far shares of a profile may be from the truth."""

from __future__ import annotations

import math
import random
from typing import Iterable, Mapping


def shares(weights: Mapping[str, float]) -> "dict[str, float]":
    """Weights as parts of their sum."""
    total = sum(weights.values())
    assert total > 0, "nothing was measured"
    return {name: weight / total for name, weight in weights.items()}


def distance(measured: Mapping[str, float], truth: Mapping[str, float]) -> float:
    """The total variation distance of two distributions given as weights: 0 is equal, 1 has nothing in common."""
    a, b = shares(measured), shares(truth)
    return sum(abs(a.get(name, 0.0) - b.get(name, 0.0)) for name in {*a, *b}) / 2


def floor(truth: Mapping[str, float], samples: int) -> float:
    """The distance to expect if each of so many samples were drawn at random from the truth (multinomial)."""
    assert samples > 0, "there are no samples"
    return sum(math.sqrt(2 * p * (1 - p) / (math.pi * samples)) for p in shares(truth).values()) / 2


def chance(truth: Mapping[str, float], samples: int, draws: int = 400) -> float:
    """The largest distance of so many draws of samples from the truth: what chance alone may do, now and then."""
    parts, order, most = shares(truth), random.Random("plimsoll"), 0.0
    for _ in range(draws):
        drawn = dict.fromkeys(parts, 0.0)
        for name in order.choices(list(parts), weights=list(parts.values()), k=samples):
            drawn[name] += 1.0
        most = max(most, distance(drawn, parts))
    return most


def worth(weights: Iterable[float]) -> int:
    """How many samples of equal weight tell as much as these (Kish's effective sample size): late ticks weigh more."""
    all_of_them = list(weights)
    return max(1, round(sum(all_of_them) ** 2 / sum(weight ** 2 for weight in all_of_them)))


def assert_shares(measured: Mapping[str, float], truth: Mapping[str, float], samples: int, slack: float = 0.01) -> None:
    """Measured shares are the true ones, as well as so many samples can tell, and `slack`.

    Many samples must come as close as is to be expected. Few may be as far off as chance puts them now and then: these
    tests run by the hundred.
    """
    few = samples < 3000
    found, allowed = distance(measured, truth), (chance if few else floor)(truth, samples) + slack
    told = "\n".join(f"  {name:24} measured {shares(measured).get(name, 0):7.2%}  true {part:7.2%}"
                     for name, part in sorted(shares(truth).items()))
    assert found <= allowed, f"distance {found:.4f}, allowed {allowed:.4f} with {samples} samples:\n{told}"
