"""Files of `ostler export`: the manifest, and what runs an ONNX or TorchScript file.

Whatever is wrong with a file is a `ValueError` that names it.
"""

import json

import numpy as np

from ostler.files import regular

#: What a manifest says of itself.
FORMAT, VERSION = "ostler-policy", 1
#: Nobody's row has more numbers.
MOST = 1 << 24
#: No manifest has more bytes.
LONGEST = 1 << 24
#: The largest number in single precision.
LARGEST = 3.4028234e38


def manifest(about, file):
    """What is said of a policy's `file`."""
    try:
        text = contents(about)
    except FileNotFoundError:
        raise ValueError(f"{about} is not there: `ostler export` writes it beside {file.name}") from None
    except OSError as e:
        raise ValueError(f"{about} cannot be read: {e.strerror}") from None
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise _wrong(about, f"it is no JSON: {e}") from None
    if not isinstance(read, dict) or read.get("format") != FORMAT:
        raise _wrong(about, f'it says no "format": "{FORMAT}"')
    if type(read.get("version")) is not int or read["version"] != VERSION:
        raise _wrong(about, f"its version is {read.get('version')!r}, {VERSION} is known")
    return read


def contents(path):
    """The bytes of a regular file that is no longer than a manifest can be."""
    with regular(path).open("rb") as file:
        read = file.read(LONGEST + 1)
    if len(read) > LONGEST:
        raise ValueError(f"{path} has more than {LONGEST} bytes")
    return read


def _wrong(about, why):
    return ValueError(f"{about} is not the manifest of a policy: {why}")


class Layout:
    """What a policy sees and gives, as its manifest says; all of it is checked."""

    def __init__(self, manifest, about):
        self.about = about
        root = (manifest, "")
        self.width = self._count(root, "observation_width")
        terms = self._list(root, "observations", 1)
        picks, factors, sizes = zip(*(self._term(term) for term in terms), strict=True)
        #: Places of the newest values in the policy's row, in the order of terms.
        self.pick = np.concatenate(picks)
        if len(np.unique(self.pick)) != len(self.pick):
            raise self._no("observations", "two of them stand in one place of the row")
        if sum(sizes) != self.width:
            raise self._no("observation_width", f"is not {sum(sizes)}, as the observations have it")
        #: From scaled numbers to measured ones.
        self.factor = np.concatenate(factors)
        self.controls = [self._text(c, "name") for c in self._list(root, "controls", 1)]
        inputs = [self._stream(i) for i in self._list(root, "inputs", 1)]
        self.outputs = [self._stream(o) for o in self._list(root, "outputs", 2)]
        self.states = inputs[1:]
        if inputs[0] != ("obs", len(self.pick)):
            raise self._no("inputs[0]", f'is not "obs" with the {len(self.pick)} numbers of the observations')
        wanted = ["actions", "controls"]
        if [name for name, _ in self.outputs[:2]] != wanted:
            raise self._no("outputs", 'do not begin with "actions" and "controls"')
        if self.outputs[1][1] != len(self.controls):
            raise self._no("outputs[1]", f"has another width than there are controls, {len(self.controls)}")
        outputs, back = dict(self.outputs), {"history": "history_out", "h_in": "h_out"}
        if len(outputs) != len(self.outputs) or len(dict(inputs)) != len(inputs):
            raise self._no("inputs", "two of them, or of the outputs, have one name")
        for name, width in self.states:
            if name not in back and name != "first":
                raise self._no("inputs", f'nobody knows what "{name}" is')
            if name in back and outputs.get(back[name]) != width:
                raise self._no("outputs", f'"{back[name]}" is not as wide as the input "{name}"')
            if name == "first" and width != 1:
                raise self._no("inputs", f'"first" has {width} numbers')

    def _no(self, path, why):
        return _wrong(self.about, f"{path} {why}" if path else why)

    def _of(self, place, key):
        """A value and its path."""
        value, path = place
        at = f"{path}.{key}" if path else key
        if not isinstance(value, dict):
            raise self._no(path, "is no object")
        if key not in value:
            raise self._no(at, "is missing")
        return value[key], at

    def _count(self, place, key, least=1):
        value, at = self._of(place, key)
        if type(value) is not int or not least <= value <= MOST:
            raise self._no(at, f"is no whole number from {least} to {MOST}")
        return value

    def _text(self, place, key):
        value, at = self._of(place, key)
        if not isinstance(value, str):
            raise self._no(at, "is no text")
        return value

    def _list(self, place, key, least):
        value, at = self._of(place, key)
        if not isinstance(value, list) or len(value) < least:
            raise self._no(at, f"is no list of {least} or more")
        return [(x, f"{at}[{i}]") for i, x in enumerate(value)]

    def _stream(self, place):
        """Name and width of an input or output `[N, width]`."""
        shape = self._list(place, "shape", 2)
        width = self._count(({"width": shape[1][0]}, place[1]), "width")
        if len(shape) != 2 or shape[0][0] != "N":
            raise self._no(f"{place[1]}.shape", 'is not ["N", width]')
        return self._text(place, "name"), width

    def _term(self, place):
        """Places of a term's newest values, the factors that undo its scale, and its numbers in a row."""
        size = self._count(place, "size")
        row = self._of(place, "row")
        first, stride = self._count(row, "first", 0), self._count(row, "stride", 0)
        history = self._count(place, "history")
        at = first + (history - 1) * stride
        if at + size > self.width:
            raise self._no(place[1], f"ends behind the row, of {self.width} numbers")
        scale = self._list(place, "scale", size)
        if len(scale) != size:
            raise self._no(f"{place[1]}.scale", f"has {len(scale)} numbers for {size}")
        for x, path in scale:
            # A factor of 0 shows nothing.
            if type(x) not in (int, float) or not (x == 0 or 1 / LARGEST <= abs(x) <= LARGEST):
                raise self._no(path, "is no number that scales")
        factor = np.array([1 / x if x != 0 else 0 for x, _ in scale], np.float32)
        return np.arange(at, at + size, dtype=np.int64), factor, size * history


def onnx(file, layout):
    """Runs an ONNX file: arrays by name to arrays by name."""
    try:
        import onnxruntime
    except ImportError:
        raise ImportError(f"{file.name} is run by onnxruntime: pip install onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if not file.is_file():
        raise ValueError(f"{file} is not there")
    try:
        session = onnxruntime.InferenceSession(
            str(file), options, providers=["CPUExecutionProvider"]
        )
    except Exception as e:
        raise ValueError(f"{file} is no policy: {e}") from None
    has = {i.name: i.shape for i in session.get_inputs()}
    gives = {o.name: o.shape for o in session.get_outputs()}
    seen = dict([("obs", len(layout.pick)), *layout.states])
    # What the network does not need is no input of the file.
    for name in has.keys() - seen.keys():
        raise _unlike(file, layout, f'it has an input "{name}"')
    widths = [(name, has[name], seen[name]) for name in has]
    widths += [(name, gives.get(name), width) for name, width in layout.outputs]
    for name, shape, width in widths:
        if shape is None or len(shape) != 2 or shape[1] != width:
            raise _unlike(file, layout, f'"{name}" is {shape} in it, not [N, {width}]')
    names = [name for name, _ in layout.outputs]

    def run(inputs):
        given = {name: x for name, x in inputs.items() if name in has}
        return dict(zip(names, session.run(names, given), strict=True))

    try:
        run({name: np.zeros((1, width), np.float32) for name, width in seen.items()})
    except Exception as e:
        raise ValueError(f"{file} is no policy: {e}") from None
    return run


def script(file, layout):
    """The same of a TorchScript file."""
    try:
        import torch
    except ImportError:
        raise ImportError(f"{file.name} is run by PyTorch: pip install torch") from None
    if not file.is_file():
        raise ValueError(f"{file} is not there")
    widths = [width for _, width in layout.outputs]
    inputs = [("obs", len(layout.pick)), *layout.states]
    try:
        module = torch.jit.load(str(file), map_location="cpu").eval()
        with torch.no_grad():
            tried = module(*(torch.zeros(1, width) for _, width in inputs))
    except Exception as e:
        # Of many lines the last says what is wrong.
        why = str(e).strip().splitlines() or [type(e).__name__]
        raise ValueError(f"{file} is no policy, or another one than {layout.about.name} says: {why[-1]}") from None
    if not isinstance(tried, torch.Tensor) or tried.shape != (1, sum(widths)):
        raise _unlike(file, layout, f"it does not give {sum(widths)} numbers")

    def run(inputs):
        with torch.no_grad():
            out = module(*(torch.from_numpy(x) for x in inputs.values()))
        parts = torch.split(out, widths, dim=1)
        return {name: part.numpy() for (name, _), part in zip(layout.outputs, parts, strict=True)}

    return run


def _unlike(file, layout, why):
    return ValueError(f"{file} is another policy than {layout.about.name} says: {why}")
