"""Damage to good files by seeded dice: to the values of JSON and YAML, to lines and fields, and to bytes."""

import json
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import yaml

Mutation = Callable[[Random, bytes], bytes]
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 10**6, 2**31, 2**63, 10**30, -(10**30), 0.0, -0.5, 1.5, 1e30, 1e308, -1e308),
    *("", " ", "x", "0", "none", "softmax", "x(", "window(size=0)", "\u0000", "\u2028", "\ud800", "é" * 300, "/", ".."),
    *([], [None], [0], [[]], ["x"], [1, 2, 3], [{}], {}, {"": None}, {"x": 1}, {"name": []}, {"0": "a", "2": 3}),
)
SCALARS = (
    *("!!bool x", '!!int ""', "!!int x", "!!float x", "!!float", "!!timestamp x", "!!null x", "!!binary é"),
    *("!!binary x", "!!set x", "!!omap x", "!!pairs [x]", "!!seq x", "!!map x", "!!merge x", "!!value x", "!!str"),
    *("!!bool {}", "!!int []", "!x y", "!!python/name:os.system x", "&a x", "*a", "<<", "=", "~", "2001-99-99"),
    *("0b", "0x", "1:60", "0o9", "1_", "_1", ".inf", "-.inf", ".nan", "1e30", "1e999", "9" * 23, "9" * 400, "{"),
    *("[", "]", "'", '"', "- ", "? ", "{a: 1, a: 2}", "{x: {y: [1]}}", "[[], {}]", "!!timestamp 2001-01-01"),
    *("2001-01-01", "yes", "0.5", "-3", "1" * 15, "{[]: 1}", "{{}: 1}", "!!set {a, b}", "!!binary aGk=", "on"),
    *("null", "@", "`", "%", "|", ">", "#", "	", "é"),
)
BITS = (
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r",
    b"\t",
    b"\n\n",
    b'"',
    b"'",
    b",",
    b"{",
    b"]",
    b"-",
    b"9" * 30,
    b"1e999",
    b"NaN",
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in nested values: what holds it, and its key."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, one in inner for place in ((value, key), *places(one))]


def change(dice: Random, value: Any) -> Any:
    """Nested values with one of them replaced, wrapped, left out, doubled or moved."""
    found = places(value)
    if not found or dice.random() < 0.02:
        return deepcopy(dice.choice(VALUES))
    holder, key = dice.choice(found)
    how = dice.randrange(10)
    if how < 5:
        holder[key] = deepcopy(dice.choice(VALUES))
    elif how == 5:
        holder[key] = dice.choice(({"x": holder[key]}, [holder[key]], str(holder[key]), [holder[key], 1]))
    elif how == 6:
        del holder[key]
    elif how == 7:
        other, name = dice.choice(found)
        holder[key] = deepcopy(other[name]) if name in range_of(other) else None
    elif how == 8 and isinstance(holder, dict):
        holder[dice.choice((f"{key}x", "x", "", "name", "__class__"))] = holder.pop(key)
    else:
        near = holder[key] if type(holder[key]) is int else 1
        holder[key] = dice.choice((near + 1, near - 1, 2 * near, -near, float(near), near * 10**9))
    return value


def range_of(holder: Any) -> Any:
    """The keys that there still are."""
    return holder if isinstance(holder, dict) else range(len(holder))


def of_json(dice: Random, data: bytes) -> bytes:
    """Damage to a JSON text, mostly to its values."""
    if dice.random() < 0.2:
        return of_bytes(dice, data)
    value = json.loads(data)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        value = change(dice, value)
    text = json.dumps(value)
    if dice.random() < 0.05 and text[:1] == "{" and len(text) > 2:
        return f"{{{text[1:].rstrip('}').split(',')[0]}, {text[1:]}".encode()  # most often a key twice
    return text.encode("utf-8", "surrogatepass")


def of_rows(dice: Random, data: bytes) -> bytes:
    """Damage to lines of JSON."""
    if dice.random() < 0.3:
        return of_lines(dice, data)
    lines = data.splitlines()
    at = dice.randrange(len(lines))
    lines[at] = of_json(dice, lines[at])
    return b"\n".join(lines) + b"\n"


def of_yaml(dice: Random, data: bytes) -> bytes:
    """Damage to a YAML text: other scalars behind its keys, or other values, or other lines."""
    how = dice.random()
    if how < 0.15:
        return of_lines(dice, data)
    if how < 0.5:
        value = yaml.safe_load(data)
        for _ in range(dice.choice((1, 1, 2))):
            value = change(dice, value)
        try:
            return yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass")
        except (yaml.YAMLError, UnicodeError):
            return b"x"
    lines = data.decode().splitlines()
    at = dice.choice([at for at, line in enumerate(lines) if ":" in line and not line.strip().startswith("#")])
    key, _, _ = lines[at].partition(":")
    scalar = dice.choice(SCALARS)
    word = dice.random()
    lines[at] = (
        f"{key}: {scalar}" if word < 0.8 else f"{scalar}: {key}" if word < 0.9 else f"{lines[at]}\n{key}: {scalar}"
    )
    return "\n".join(lines).encode()


def of_lines(dice: Random, data: bytes) -> bytes:
    """Damage to lines and their fields: of tables, tags and texts."""
    lines = data.split(b"\n")
    for _ in range(dice.choice((1, 1, 2))):
        at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
        how = dice.randrange(7)
        if how == 0:
            lines[at : at + 1] = []
        elif how == 1:
            lines.insert(at, lines[other])
        elif how == 2:
            lines[at] = dice.choice((b"", b" ", b"\t", b"x", b"x\tx", b"\t\t", b",,", b'"', b"{}", b"[]", b"\xff"))
        elif how == 3:
            lines[at] = lines[at][: dice.randrange(len(lines[at]) + 1)]
        elif how == 4:
            mark = dice.choice((b"\t", b",", b" ", b"-"))
            fields = lines[at].split(mark)
            fields[dice.randrange(len(fields))] = dice.choice((b"", b"-1", b"9" * 30, b"1e999", b"nan", b"x", b"\0"))
            lines[at] = mark.join(fields)
        else:
            return of_bytes(dice, b"\n".join(lines))
        lines = lines or [b""]
    return b"\n".join(lines)


def of_bytes(dice: Random, data: bytes) -> bytes:
    """Damage to bytes, more of it near the beginning, where headers are."""
    made = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 5))):
        at = dice.randrange(min(len(made), dice.choice((40, 400, len(made) + 1))) + 1)
        how = dice.randrange(4)
        if how == 0:
            made[at : at + 1] = bytes([dice.randrange(256)])
        elif how == 1:
            made[at:at] = dice.choice(BITS)
        elif how == 2:
            made[at : at + dice.choice((1, 3, 30))] = b""
        else:
            made = made[: dice.randrange(len(made) + 1)] if dice.random() < 0.3 else made + made[at : at + 50]
    return bytes(made)


def of_words(dice: Random, data: bytes) -> bytes:
    """Damage to a change of a recipe, `key=value`, or to a word of a spec."""
    text = data.decode().rstrip("\n")
    how = dice.randrange(6)
    key, _, value = text.partition("=")
    if how < 2:
        return f"{key}={dice.choice(SCALARS)}".encode()
    if how == 2:
        return f"{key}={json.dumps(dice.choice(VALUES))}".encode()
    if how == 3:
        return f"{dice.choice((f'{key}.x', f'x.{key}', key.split('.')[0], '.', f'{key}.', key * 2))}={value}".encode()
    if how == 4:
        return f"{key}={value}({dice.choice(('size', 'heads', 'x', ''))}={dice.choice(SCALARS)})".encode()
    return of_bytes(dice, text.encode()).decode("utf-8", "replace").encode()
