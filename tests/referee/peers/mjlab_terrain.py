"""mjlab's own tiles of ground: `mjlab_terrain.py WHEELS CASES`, where CASES is JSON:
[{"class": "BoxPyramidStairsTerrainCfg", "difficulty": 1, "numbers": {...}}, ...].

Prints a list of {"origin": [x, y, z], "heights": [y][x]} (m, from the tile's corner of least x
and y). Heights of boxes are those that MuJoCo's rays meet over the middles of cells of 0.1 m;
those of height fields are the field's own, which mjlab stretches over the tile: 80 corners over
80 cells. Its classes are called unmodified, except for how fields are coloured.
"""

import json
import sys

import absent

WHEELS, CASES = sys.argv[1:3]
sys.path.insert(0, WHEELS)
absent.stand_in(
    *"warp mujoco_warp tyro mediapy imageio_ffmpeg prettytable tqdm torchrunx trimesh scipy viser mjviser".split(),
    *"tensordict rsl_rl tensorboard onnxscript onnx wandb PIL imageio matplotlib torch".split(),
)
absent.bare("mjlab", f"{WHEELS}/mjlab")
absent.bare("mjlab.terrains", f"{WHEELS}/mjlab/terrains")

import mujoco  # noqa: E402
import numpy as np  # noqa: E402
from mjlab.terrains import heightfield_terrains, primitive_terrains  # noqa: E402

CELL = 0.1

# Colours are drawn with SciPy.
heightfield_terrains.color_by_height = lambda *_, **__: ""


def field(model):
    """Heights of the one height field, `[y][x]`."""
    shape = model.hfield_nrow[0], model.hfield_ncol[0]
    geom = int(np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_HFIELD)[0])
    return model.hfield_data.reshape(shape) * model.hfield_size[0, 2] + model.geom_pos[geom, 2]


def tops(model, size):
    """Where rays straight down meet boxes over the middles of cells, `[y][x]`."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    down, geom = np.array([0.0, 0.0, -1.0]), np.zeros(1, np.int32)

    def top(x, y):
        start = np.array([x, y, 100.0])
        return 100.0 - mujoco.mj_ray(model, data, start, down, None, 1, -1, geom)

    x, y = [(np.arange(round(side / CELL)) + 0.5) * CELL for side in size]
    return np.array([[top(a, b) for a in x] for b in y])


def tile(case):
    module = heightfield_terrains if case["class"].startswith("Hf") else primitive_terrains
    cfg = getattr(module, case["class"])(**case["numbers"])
    spec = mujoco.MjSpec()
    spec.worldbody.add_body(name="terrain")
    made = cfg.function(case["difficulty"], spec, np.random.default_rng(0))
    model = spec.compile()
    heights = field(model) if model.nhfield else tops(model, cfg.size)
    return {"origin": list(map(float, made.origin)), "heights": heights.tolist()}


print(json.dumps([tile(case) for case in json.loads(CASES)]))
