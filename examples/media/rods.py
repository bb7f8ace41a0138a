#!/usr/bin/env python3
"""Makes rods.npy, the permittivity of a photonic crystal of dielectric rods (eps 11.56, radius 0.18 of their distance) in
air, on 150 x 150 cells, after A. Mekis et al., Phys. Rev. Lett. 77 (1996) 3787-3790. A row and a column of rods end in a corner at
the middle; they are missing. Each value is the mean over the cell."""
import os
import struct

CELLS, PERIOD, FINE = 150, 10, 8


def permittivity(x, y):
    column, row = x // PERIOD, y // PERIOD
    if (row == 7 and column <= 7) or (column == 7 and row >= 7):
        return 1.0
    r2 = (x % PERIOD - PERIOD / 2) ** 2 + (y % PERIOD - PERIOD / 2) ** 2
    return 11.56 if r2 < (0.18 * PERIOD) ** 2 else 1.0


def mean(i, j):
    at = [(k + 0.5) / FINE for k in range(FINE)]
    return sum(permittivity(i + a, j + b) for a in at for b in at) / FINE**2


values = [mean(i, j) for i in range(CELLS) for j in range(CELLS)]
# The .npy format, version 1.0: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (CELLS, CELLS)
head += " " * (63 - (10 + len(head)) % 64) + "\n"
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rods.npy")
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode("latin1"))
    file.write(struct.pack("<%df" % len(values), *values))
