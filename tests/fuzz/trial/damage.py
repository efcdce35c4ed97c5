"""Files made wrong: bytes changed, cut, put in and taken out; JSON that is JSON, with other values."""

import json

BAD_JSON = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    0.5,
    1e308,
    2**63,
    -(2**63) - 1,
    10**30,
    "",
    "auto",
    "nan",
    "\u0000",
    "a" * 3000,
    [],
    [[]],
    [None],
    [1, 2, 3],
    {},
    {"a": {}},
    [[[[[[1]]]]]],
    "\x1b[0m",
    "../../x",
    "gla",
    "sse",
]


def flipped(chance, data):
    data = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8, 64))):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


def near_start(chance, data):
    """Bits flipped where a file says what is in it."""
    return flipped(chance, data[:512]) + data[512:]


def cut(chance, data):
    return data[: chance.randrange(len(data) + 1)]


def overwritten(chance, data):
    at, n = chance.randrange(len(data) + 1), chance.choice((1, 4, 8, 64, 1024))
    fill = chance.choice((b"\0" * n, b"\xff" * n, chance.randbytes(n), b"9" * n, b"[" * n, b'"' * n))
    return data[:at] + fill + data[at + n :]


def taken_out(chance, data):
    at, n = chance.randrange(len(data) + 1), chance.choice((1, 2, 16, 256))
    return data[:at] + data[at + n :]


def put_in(chance, data):
    at = chance.randrange(len(data) + 1)
    more = chance.choice(
        (
            b"\0",
            b"\r\n",
            b"\xff\xfe",
            b"\xc3\x28",
            b"\xed\xa0\x80",
            b"\x1b[2J",
            b"{" * 5000,
            b"[" * 50000,
            b"a" * 20000,
            b"1" * 400,
            b"\\u0000",
            b"\xf0\x9f\x98\x80",
        )
    )
    return data[:at] + more + data[at:]


def doubled(chance, data):
    at, n = chance.randrange(len(data) + 1), chance.choice((8, 64, 4096))
    return data[:at] + data[at : at + n] * chance.choice((2, 3, 50)) + data[at + n :]


def other(chance, data):
    """Another kind of file under this one's name."""
    return chance.choice(
        (
            b"",
            b"\0",
            b"\n",
            b"{}",
            b"[]",
            b"null",
            chance.randbytes(300),
            b"\x89HDF\r\n\x1a\n" + chance.randbytes(200),
            b"%PDF-1.4\n",
            (8).to_bytes(8, "little") + b"{}      ",
            (2**63 - 1).to_bytes(8, "little"),
            b"\x89PNG\r\n\x1a\n",
            b"version https://git-lfs.github.com/spec/v1\n",
        )
    )


def grown(chance, data):
    return data + chance.choice((b"\0", chance.randbytes(7), b"\0" * 4096, data))


BYTES = (flipped, flipped, near_start, cut, cut, overwritten, taken_out, put_in, doubled, other, grown)


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value[:40]) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, path + (key,))


def changed_json(chance, data):
    """The same JSON with a value, a key or an item that should not be there, or without one; bytes where it is no JSON."""
    try:
        value = json.loads(data)
    except ValueError:
        return chance.choice(BYTES)(chance, data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.choice(list(places(value)))
        if not at:
            value = chance.choice(BAD_JSON) if chance.random() < 0.1 else value
            continue
        holder = value
        for key in at[:-1]:
            holder = holder[key]
        old, kind = holder[at[-1]], chance.randrange(4)
        if kind == 0 and isinstance(holder, dict):
            del holder[at[-1]]
        elif kind == 1 and isinstance(old, (int, float)) and not isinstance(old, bool):
            holder[at[-1]] = chance.choice((-old, old + 1, old - 1, old * 2, old * 1000, old / 3, old + 0.5, str(old), [old], 10**15))
        elif kind == 2 and isinstance(holder, dict):
            holder[chance.choice(("", "a", "type", "model_type", "attn", at[-1] + "x"))] = chance.choice(BAD_JSON)
        else:
            holder[at[-1]] = chance.choice(BAD_JSON)
    return json.dumps(value).encode()


def damaged(chance, data, as_json=False):
    if as_json and chance.random() < 0.7:
        return changed_json(chance, data)
    return chance.choice(BYTES)(chance, data)
