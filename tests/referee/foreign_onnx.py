"""ONNX files of policies as other programs may write them, and what onnxruntime makes of them.

    foreign_onnx.py FOLDER     writes FOLDER/NAME.onnx; prints one JSON object: observations, and
                               of each file its actions, or none where it is to be refused
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

WIDTH, HIDDEN = 6, 5
RNG = np.random.default_rng(7)
node = helper.make_node


def some(*shape):
    return RNG.normal(size=shape).astype(np.float32)


WEIGHTS = {"w1": some(WIDTH, HIDDEN), "w2": some(HIDDEN, 3)}


def model(middle, constants=(), opset=17, kind=TensorProto.FLOAT):
    """A layer to `b`, `middle` from `b` to `z`, a layer to `actions`."""
    constants = dict(WEIGHTS, **dict(constants))
    if kind == TensorProto.DOUBLE:
        constants = {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in constants.items()}
    nodes = [node("MatMul", ["obs", "w1"], ["b"]), *middle, node("MatMul", ["z", "w2"], ["actions"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("obs", kind, ["N", WIDTH])],
        [helper.make_tensor_value_info("actions", kind, ["N", 3])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 8 if opset > 12 else 6
    return made


def one(op, inputs=("b",), constants=(), opset=17, **attributes):
    return model([node(op, list(inputs), ["z"], **attributes)], constants, opset)


def chain(*steps, constants=(), opset=17, kind=TensorProto.FLOAT):
    """Each step: operator, inputs, attributes; `^` is what the one before made."""
    nodes, before = [], "b"
    for k, (op, inputs, attributes) in enumerate(steps):
        name = "z" if k + 1 == len(steps) else f"v{k}"
        nodes.append(node(op, [before if i == "^" else i for i in inputs], [name], **attributes))
        before = name
    return model(nodes, constants, opset, kind)


ROW, K, L = some(HIDDEN), some(HIDDEN), some(1)
AXIS = np.array([1])
RUN = {
    "clip_6": one("Clip", opset=6, min=-0.2, max=0.3),
    "clip_10": one("Clip", opset=10, max=0.3),
    "clip_13": one("Clip", ["b", "", "high"], {"high": np.float32(0.1)}),
    "max_1": one("Max", ["b"]),
    "max_3": one("Max", ["b", "k", "l"], {"k": K, "l": L}),
    "min_4": one("Min", ["b", "k", "l", "r"], {"k": K, "l": L, "r": ROW}),
    "mean_noop": chain(("ReduceMean", ["^"], {"noop_with_empty_axes": 1}), ("Mul", ["^", "b"], {}), opset=18),
    "mean_all": chain(("ReduceMean", ["^"], {}), ("Mul", ["^", "b"], {}), opset=18),
    "mean_axes": chain(("ReduceMean", ["^", "a"], {}), ("Mul", ["^", "b"], {}), constants={"a": AXIS}, opset=18),
    **{
        f"arg_max_{last}": chain(
            ("Relu", ["^"], {}),
            ("Min", ["^", "zero"], {}),
            ("ArgMax", ["^"], {"axis": -1, "select_last_index": last}),
            ("Cast", ["^"], {"to": 1}),
            ("Sub", ["^", "b"], {}),
            constants={"zero": np.zeros(1, np.float32)},
        )
        for last in (0, 1)
    },
    "whole_div": chain(
        ("Mul", ["^", "ten"], {}),
        ("Cast", ["^"], {"to": 6}),
        ("Div", ["^", "three"], {}),
        ("Cast", ["^"], {"to": 1}),
        constants={"ten": np.float32(10), "three": np.int32(3)},
    ),
    "whole_pow": chain(
        ("Cast", ["^"], {"to": 7}),
        ("Pow", ["^", "two"], {}),
        ("Cast", ["^"], {"to": 1}),
        constants={"two": np.float32(2)},
    ),
    **{
        f"constant_{name}": model([node("Constant", [], ["c"], **value), node("Mul", ["b", "c"], ["z"])])
        for name, value in {"float": {"value_float": 0.5}, "floats": {"value_floats": [0.5, 1, 2, 3, 4]}}.items()
    },
    "constant_ints": model([
        node("Constant", [], ["c"], value_ints=[-1, HIDDEN]),
        node("Reshape", ["b", "c"], ["z"]),
    ]),
    "constant_int": model([
        node("Constant", [], ["c"], value_int=-1),
        node("Gather", ["b", "c"], ["g"], axis=1),
        node("Unsqueeze", ["g", "a"], ["u"]),
        node("Mul", ["u", "b"], ["z"]),
    ], {"a": AXIS}),
    "gather": one("Gather", ["b", "at"], {"at": np.array([1, -1, 0, -5, 4])}, axis=-1),
    "double": chain(("Tanh", ["^"], {}), kind=TensorProto.DOUBLE),
    "double_mean": chain(
        ("ReduceMean", ["^"], {"axes": [1]}), ("Mul", ["^", "b"], {}), kind=TensorProto.DOUBLE
    ),
    "flatten_last": one("Flatten", axis=-1),
    "flatten_whole": chain(("Flatten", ["^"], {"axis": 2}), ("Reshape", ["^", "s"], {}), constants={"s": np.array([-1, HIDDEN])}),
    "squeeze_all": chain(("Unsqueeze", ["^", "a"], {}), ("Squeeze", ["^"], {}), constants={"a": AXIS}),
    "squeeze_mixed": chain(
        ("Unsqueeze", ["^", "two"], {}), ("Squeeze", ["^", "two"], {}), constants={"two": np.array([-1, 0])}
    ),
    "squeeze_11": chain(("Unsqueeze", ["^"], {"axes": [1]}), ("Squeeze", ["^"], {"axes": [-2]}), opset=11),
    "norm": one("LayerNormalization", ["b", "k", "r"], {"k": K, "r": ROW}, axis=1, epsilon=0.1),
    "bool": chain(("Where", ["mask", "^", "zero"], {}), constants={"mask": np.array([True, False, True, True, False]), "zero": np.float32(0)}),
    "gemm": chain(("Gemm", ["^", "w", "k"], {"alpha": 0.5, "beta": 2.0, "transB": 1}), constants={"w": some(HIDDEN, HIDDEN), "k": K}),
}
# In part beyond what ONNX allows: what is said of each is asked for, not that onnxruntime runs it.
REFUSED = {
    "Clip min": one("Clip", min=-0.2),
    "Reshape allowzero": one("Reshape", ["b", "s"], {"s": np.array([-1, HIDDEN])}, allowzero=1),
    "LayerNormalization stash_type": one("LayerNormalization", ["b", "k"], {"k": K}, stash_type=10),
    "LayerNormalization outputs": model([node("LayerNormalization", ["b", "k"], ["z", "mean"])], {"k": K}),
    "Cast float16": one("Cast", to=10),
    "constant float16": chain(("Cast", ["h"], {"to": 1}), constants={"h": np.zeros((1, HIDDEN), np.float16)}),
    "input int64": model([node("Identity", ["b"], ["z"])], kind=TensorProto.INT64),
    "Add broadcast": one("Add", ["b", "k"], {"k": K}, opset=6, broadcast=1),
    "Elu alpha": one("Elu", alpha=1),
    "Mul inputs": one("Mul", ["b"]),
    "Softmax": one("Softmax"),
    "Constant": model([node("Constant", [], ["c"], value_string="a"), node("Mul", ["b", "c"], ["z"])]),
    "Squeeze": chain(("Squeeze", ["^", "a"], {}), constants={"a": AXIS}),
    "Gather": one("Gather", ["b", "at"], {"at": np.array([7, 0, 0, 0, 0])}, axis=1),
}


def main(folder):
    obs = some(4, WIDTH)
    told = {"obs": obs.tolist(), "run": {}, "refused": list(REFUSED)}
    for name, made in {**RUN, **REFUSED}.items():
        onnx.save(made, folder / f"{name}.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    for name in RUN:
        session = onnxruntime.InferenceSession(folder / f"{name}.onnx", options, providers=["CPUExecutionProvider"])
        kind = np.float64 if name.startswith("double") else np.float32
        told["run"][name] = session.run(["actions"], {"obs": obs.astype(kind)})[0].tolist()
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
