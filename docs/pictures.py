"""Draws arrays that `torre run --out` wrote as the pictures of this book. Needs Python 3 and nothing else.

    pictures.py OUT.png SCALE VOLUME.npy        one array with two axes: the first to the right, the second upward
    pictures.py OUT.png SCALE U-*.npy           arrays with one axis: the axis to the right, time upward

A cell becomes SCALE x SCALE pixels; a negative SCALE turns the picture upside down, for axes that point down.
Values of both signs are blue, white and red, white being 0; values of one sign run from white to dark blue. The scale ends at the
value that one cell in a thousand exceeds, so that a source does not hide the waves.
"""

import array
import ast
import re
import struct
import sys
import zlib

BLUE, WHITE, RED = (33, 76, 159), (255, 255, 255), (178, 31, 44)


def load(path):
    """The shape and the values of a `.npy` file of version 1, little-endian floats, in C order."""
    data = open(path, "rb").read()
    length = struct.unpack("<H", data[8:10])[0]
    head = ast.literal_eval(data[10 : 10 + length].decode("latin-1"))
    assert data[:8] == b"\x93NUMPY\x01\x00" and not head["fortran_order"], path
    values = array.array({"<f4": "f", "<f8": "d"}[head["descr"]])
    values.frombytes(data[10 + length :])
    return head["shape"], values


def shade(value, low, high):
    """From 0 to 254, 127 being 0."""
    part = value / (max(-low, high) or 1.0)
    return 127 + round(127 * max(-1.0 if low < 0 else 0.0, min(1.0, part)))


def palette(low):
    """The colours of all shades."""
    ends = (BLUE, RED) if low < 0 else (WHITE, BLUE)
    parts = [(ends[s > 127], abs(s - 127) / 127) for s in range(255)]
    return bytes(round(w + (e - w) * part) for end, part in parts for w, e in zip(WHITE, end))


def write(path, rows, scale, colours):
    """Rows of shades, from the top."""
    lines = b"".join((b"\0" + b"".join(bytes([s]) * scale for s in row)) * scale for row in rows)
    size = struct.pack(">II", len(rows[0]) * scale, len(rows) * scale)

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size + b"\x08\x03\0\0\0") + chunk(b"PLTE", colours))
        file.write(chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


def main(out, scale, *paths):
    def step(path):
        return int(re.findall(r"-(\d+)\.npy$", path)[0])

    arrays = [load(path) for path in sorted(paths, key=step)]
    if len(arrays[0][0]) == 2:
        (nx, ny), values = arrays[0]
        field = [[values[x * ny + y] for x in range(nx)] for y in range(ny)]
    else:
        field = [list(values) for _, values in arrays]
    ordered = sorted(v for row in field for v in row)
    most = len(ordered) // 1000
    low, high = ordered[most], ordered[-1 - most]
    if low > -0.01 * high:
        low = 0.0
    shades = [[shade(v, low, high) for v in row] for row in field]
    scale = int(scale)
    write(out, shades if scale < 0 else shades[::-1], abs(scale), palette(low))


main(*sys.argv[1:])
