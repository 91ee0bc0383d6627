"""Writes tests/fixtures/distributions.json: quantiles of distributions, by numpy and by the
standard library's normal distribution.

    python distributions.py > ../fixtures/distributions.json

Recorded with numpy 2.4.6.
"""

import json
import sys
from statistics import NormalDist

import numpy as np

SHARES = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]
DRAWS = 20_000_000


def beta(mean, std, low, high):
    """Quantiles of numpy's draws: their own sampling error is a fourteenth of that of 10^5."""
    part, spread = (mean - low) / (high - low), std / (high - low)
    both = part * (1 - part) / spread**2 - 1
    x = np.random.default_rng(7).beta(part * both, (1 - part) * both, DRAWS)
    return (low + (high - low) * np.quantile(x, SHARES)).tolist()


def truncated_normal(mean, std, low, high):
    """The inverse of the cumulative distribution, between its values at the ends; of the upper
    tail mirrored, where the function has its digits."""
    if low > mean:
        return [-x for x in reversed(truncated_normal(-mean, std, -high, -low))]
    normal = NormalDist(mean, std)
    below, above = normal.cdf(low), normal.cdf(high)
    return [normal.inv_cdf(below + p * (above - below)) for p in SHARES]


# Mean, standard deviation, least and greatest number: shapes above and below 1, a slim one; about
# the mean, wide and narrow, in a tail, far out in one, on the other side of it.
CASES = {
    "beta": [
        (0.3, 0.1, 0.0, 1.0),
        (0.5, 0.4, -1.0, 2.0),
        (0.2, 0.3, 0.0, 1.0),
        (0.7, 0.01, 0.5, 1.0),
        (-0.6, 0.5, -1.0, 3.0),
    ],
    "truncated_normal": [
        (0.3, 0.5, 0.0, 1.0),
        (0.0, 1.0, -1.0, 4.0),
        (0.0, 1.0, 1.5, 9.0),
        (0.0, 0.1, 0.5, 0.7),
        (2.0, 1.0, -1.0, 0.5),
    ],
}
json.dump({
    "shares": SHARES,
    "cases": [
        {"distribution": name, "mean": m, "std": s, "range": [a, b],
         "quantiles": [float(f"{x:.9g}") for x in globals()[name](m, s, a, b)]}
        for name, cases in CASES.items() for m, s, a, b in cases
    ],
}, sys.stdout, separators=(",", ":"))
