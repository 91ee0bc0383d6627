"""Keyword arguments as overrides of a configuration: `key=value` in TOML."""

import math
import numbers


def toml(value):
    """A value as TOML writes it."""
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(_escaped(c) for c in value) + '"'
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        if math.isnan(number):
            return "nan"
        if math.isinf(number):
            return "inf" if number > 0 else "-inf"
        return repr(number)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(str(k))} = {toml(v)}" for k, v in value.items()) + "}"
    if hasattr(value, "tolist"):
        return toml(value.tolist())
    if isinstance(value, (list, tuple, range)):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    raise TypeError(f"a configuration has no values of {type(value).__name__}: {value!r}")


def _escaped(c):
    plain = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    if c in plain:
        return plain[c]
    return f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c


def overrides(options):
    """Lines `key=value`: tables of the configuration are dictionaries, or keys with dots."""
    lines = []
    for key, value in options.items():
        _flatten(str(key), value, lines)
    return lines


def _flatten(key, value, lines):
    if isinstance(value, dict) and value:
        for inner, one in value.items():
            _flatten(f"{key}.{inner}", one, lines)
    elif value is None:
        raise TypeError(f"{key}=None: a configuration has no such value; leave {key} out")
    else:
        lines.append(f"{key}={toml(value)}")
