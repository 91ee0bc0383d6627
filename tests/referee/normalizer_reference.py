"""Writes tests/fixtures/normalizer.json: mean and variance by numpy.

    python normalizer_reference.py > ../fixtures/normalizer.json

Recorded with numpy 2.4.6.
"""

import json
import sys

import numpy as np

rng = np.random.default_rng(5)
x = (rng.standard_normal((60, 3)) * [0.01, 1.0, 40.0] + [5.0, 0.0, -1000.0]).astype(np.float32)
json.dump({
    "rows": len(x), "x": [float(f"{v:.9g}") for v in x.reshape(-1)],
    "mean": x.astype(np.float64).mean(0).tolist(), "var": x.astype(np.float64).var(0).tolist(),
}, sys.stdout, separators=(",", ":"))
