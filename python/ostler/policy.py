"""`ostler.Policy`: a trained policy that acts on arrays."""

import tempfile
from pathlib import Path

import numpy as np

from ostler.policy_files import Layout as _Layout
from ostler.policy_files import manifest as _manifest
from ostler.policy_files import onnx as _onnx
from ostler.policy_files import script as _script
from ostler.program import run


class Policy:
    """A trained policy: the mean of its actions, without exploration.

    ```python
    policy = ostler.Policy("runs/half_cheetah/latest")
    actions = policy(obs)             # [N, O] to [N, A], NumPy or torch
    ```

    Rows are independent. A policy that remembers (recurrent, or with `history`) keeps what it
    remembers of every row from call to call: `reset(ended)` lets rows forget.
    """

    def __init__(self, source, *, agent=None, allow_native=False):
        """
        Args:
            source: a run's folder or checkpoint, which the program exports for this purpose; or
                a file of `ostler export`, `NAME.onnx` or `NAME.pt`, with `NAME.json` beside it.
            agent: of a task with several policies, whose it is; a file must be this agent's.
            allow_native: code that the run's configuration names may run (docs/security.md).

        Raises:
            ImportError: neither onnxruntime nor PyTorch is installed; the program is missing.
            ConfigError: the run cannot be used, in the program's words.
            ValueError: the file is no policy, or another agent's; its manifest is damaged or of
                another policy.
        """
        source = Path(source)
        self._kept = None
        if source.suffix in (".onnx", ".pt"):
            self._open(source)
            self._is_of(agent, source)
            return
        if source.suffix == ".json" and source.is_file():
            raise ValueError(
                f"{source} is a manifest: give the file beside it, NAME.onnx or NAME.pt, which names it itself"
            )
        kind = _kinds()[0]
        with tempfile.TemporaryDirectory() as folder:
            words = ["export", source, "--format", kind, "--out", folder, "--name", "policy"]
            words += ["--agent", agent] if agent is not None else []
            words += ["--allow-native"] * bool(allow_native)
            run(*words)
            ending = {"onnx": ".onnx", "torchscript": ".pt"}[kind]
            self._open(Path(folder) / f"policy{ending}")

    def _open(self, file):
        about = file.with_suffix(".json")
        self.manifest = _manifest(about, file)
        layout = _Layout(self.manifest, about)
        self.observation_width = layout.width
        self.controls = layout.controls
        self._pick, self._factor = layout.pick, layout.factor
        self._outputs, self._states = layout.outputs, layout.states
        open_file = _onnx if file.suffix == ".onnx" else _script
        self._run = open_file(file, layout)

    def _is_of(self, agent, file):
        own = self.manifest.get("agent")
        if agent is not None and own != agent:
            whose = f'the policy of agent "{own}"' if own is not None else "of a task without agents"
            raise ValueError(f'{file} is {whose}, not of "{agent}"')

    def __call__(self, obs):
        """Actions `[N, A]` (choices: `[N, 1]`) for observations `[N, O]` as environments give them."""
        return self.act(obs)

    def act(self, obs):
        """The same; see `act_raw` for what a robot measures."""
        rows, back = _rows(obs, self.observation_width)
        return back(self._step(rows[:, self._pick] * self._factor)["actions"])

    def act_raw(self, obs):
        """Actions and controls for observations before `scale` and `clip`, in the manifest's order.

        Controls `[N, C]` are what actuators take, in the order of `controls`.
        """
        rows, back = _rows(obs, len(self._pick))
        out = self._step(rows)
        return back(out["actions"]), back(out["controls"])

    def reset(self, ended=None):
        """All rows forget, or those where `ended` `[N]` is true."""
        if ended is None or self._kept is None:
            self._kept = None
            return
        ended = np.asarray(ended.cpu() if hasattr(ended, "cpu") else ended, bool)
        rows = next((len(k) for k in self._kept.values()), len(ended))
        if ended.shape != (rows,):
            raise ValueError(f"a mask of shape {ended.shape} for {rows} rows")
        for name, kept in self._kept.items():
            kept[ended] = 1 if name == "first" else 0

    def _step(self, terms):
        n = len(terms)
        if self._kept is not None and any(len(k) != n for k in self._kept.values()):
            raise ValueError(
                f"{n} rows, and it remembers another number of them: reset() begins anew"
            )
        if self._kept is None:
            self._kept = {
                name: np.full((n, width), name == "first", np.float32)
                for name, width in self._states
            }
        out = self._run({"obs": np.ascontiguousarray(terms, np.float32), **self._kept})
        for name in self._kept:
            told = {"history": "history_out", "h_in": "h_out"}.get(name)
            self._kept[name] = np.array(out[told]) if told else np.zeros_like(self._kept[name])
        return out


def _rows(obs, width):
    """NumPy's rows of an array, and the way back to its kind."""
    is_torch = type(obs).__module__.split(".")[0] == "torch"
    rows = obs.detach().cpu().float().numpy() if is_torch else np.asarray(obs)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(f"observations of shape {tuple(rows.shape)}; [N, {width}] is expected")
    rows = rows.astype(np.float32, copy=False)
    if not is_torch:
        return rows, lambda out: out
    import torch

    return rows, lambda out: torch.from_numpy(np.array(out)).to(obs.device)


def _kinds():
    """Formats that can be run here, the best first."""
    from importlib.util import find_spec

    kinds = [("onnxruntime", "onnx"), ("torch", "torchscript")]
    there = [kind for module, kind in kinds if find_spec(module) is not None]
    if not there:
        raise ImportError("a policy is run by onnxruntime or PyTorch: pip install onnxruntime")
    return there
