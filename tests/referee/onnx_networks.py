"""Networks of actuators as PyTorch's two exporters write them, and their weights beside them.

python tests/referee/onnx_networks.py tests/fixtures/onnx

Needs torch 2.11.0, onnx, onnxscript and safetensors; tests read what it left, without Python.
What names the exporting machine's files is taken out (metadata of nodes).
"""

import pathlib
import sys
import warnings

import onnx
import torch
from safetensors.torch import save_file
from torch import nn

HIDDEN = 8
ACTIVATIONS = {
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "tanh": nn.Tanh,
    "softsign": nn.Softsign,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "leaky_relu": nn.LeakyReLU,
}


class Motor(nn.Module):
    """An LSTM and a decoder of its last outputs, as anydrive_v3_lstm is."""

    def __init__(self, layers, first):
        super().__init__()
        self.lstm = nn.LSTM(2, HIDDEN, layers, batch_first=first)
        self.decoder = nn.Linear(HIDDEN, 1)


class Sequence(Motor):
    def forward(self, x):
        outputs, _ = self.lstm(x)
        return self.decoder(outputs[:, -1])


class Step(Motor):
    def forward(self, x, hidden, cell):
        outputs, (hidden, cell) = self.lstm(x.unsqueeze(0), (hidden, cell))
        return self.decoder(outputs.squeeze(0)), hidden, cell


def mlp(then, seed):
    torch.manual_seed(seed)
    sizes = [6, HIDDEN, HIDDEN, 1]
    layers = [layer for a, b in zip(sizes, sizes[1:]) for layer in (nn.Linear(a, b), then())]
    return nn.Sequential(*layers[:-1])


def motor(kind, layers, first, seed):
    torch.manual_seed(seed)
    return kind(layers, first)


def export(folder, name, network, inputs, **how):
    file = folder / f"{name}.onnx"
    save_file(network.state_dict(), folder / f"{name}.safetensors")
    torch.onnx.export(network.eval(), inputs, file, verbose=False, **how)
    model = onnx.load(file, load_external_data=False)
    model.producer_version = ""
    for part in (model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output):
        for field in ("metadata_props", "doc_string"):
            if part.DESCRIPTOR.fields_by_name.get(field):
                part.ClearField(field)
    file.write_bytes(model.SerializeToString())


def main(folder):
    warnings.simplefilter("ignore")
    row, step = torch.zeros(1, 6), torch.zeros(1, 1, 2)
    new, inside = {"dynamo": True}, {"dynamo": True, "external_data": False}
    old = {"dynamo": False}
    for seed, (name, then) in enumerate(ACTIVATIONS.items()):
        export(folder, f"mlp_{name}", mlp(then, seed), (row,), **inside)
    export(folder, "mlp_softsign_script", mlp(nn.Softsign, 11), (row,), **old)
    export(folder, "mlp_rows_tanh", mlp(nn.Tanh, 12), (torch.zeros(12, 1, 6),), do_constant_folding=False, **old)
    export(folder, "lstm_1_script", motor(Sequence, 1, True, 14), (step,), **old)
    axes = {"x": {0: "motors", 1: "steps"}}
    export(folder, "lstm_2_any", motor(Sequence, 2, True, 15), (step,), input_names=["x"], dynamic_axes=axes, **old)
    state = torch.zeros(2, 1, HIDDEN)
    export(folder, "lstm_2_step", motor(Step, 2, False, 16), (torch.zeros(1, 2), state, state), **new)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
