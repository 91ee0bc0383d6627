"""The extension: N environments over numpy's arrays."""

import os
from typing import Any

import numpy as np
import numpy.typing as npt

__version__: str
RAPIER: bool

class ConfigError(ValueError): ...
class RobotError(ValueError): ...
class StateError(RuntimeError): ...

Rows = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]

class Batch:
    def __new__(
        cls, path: str | os.PathLike[str], overrides: list[str], allow_native: bool
    ) -> Batch: ...
    def facts(self) -> dict[str, Any]: ...
    def reset(
        self, obs: Rows, critic: Rows | None, seed: int | None = None, spread: bool = False
    ) -> None: ...
    def step(
        self,
        actions: Rows,
        obs: Rows,
        critic: Rows | None,
        reward: Rows,
        terminated: Flags,
        truncated: Flags,
    ) -> tuple[int, bool]: ...
    def ended(
        self,
        obs: Rows,
        critic: Rows | None,
        returns: Rows,
        lengths: npt.NDArray[np.int64],
        broken: Flags,
    ) -> None: ...
    def statistics(self) -> dict[str, Any]: ...
    def set_noise(self, on: bool) -> None: ...
    def capture(self) -> bytes: ...
    def restore(self, bytes: bytes) -> None: ...
    def close(self) -> None: ...

def messages() -> list[tuple[int, str]]: ...
