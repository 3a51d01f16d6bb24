"""The two random engines: sign flips and bootstrap resamples, each one matrix product per block.

Random bits come raw from PCG64, whose stream numpy keeps stable between versions, and every sum is over
whole numbers (see `exact`). The same seed therefore gives the same sums to the bit, whatever the
processor, the number of threads or the version of numpy.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from steelyard.statistics.arrays import Array

# 256 sign vectors x 64 bytes of signs as float64 are 1 MB: a tile that stays in a core's cache. Any multiple
# of 8 rows gives the same stream of bits.
PERMUTATIONS_PER_BLOCK = 256
BYTES_PER_TILE = 64
RESAMPLED_PER_BLOCK = 2**19

Bits = npt.NDArray[np.uint8]


def random_sign_bits(queries: int, permutations: int, seed: int) -> Iterator[Bits]:
    """Blocks of random bits, one row per permutation, eight queries to a byte."""
    width = -(-queries // 8)
    generator = np.random.PCG64(seed)
    for start in range(0, permutations, PERMUTATIONS_PER_BLOCK):
        rows = min(PERMUTATIONS_PER_BLOCK, permutations - start)
        words = generator.random_raw(-(-rows * width // 8)).astype("<u8")
        yield words.view(np.uint8)[: rows * width].reshape(rows, width)


def every_sign_bits(queries: int) -> Iterator[Bits]:
    """Blocks that go through all 2**queries sign vectors once, for few queries."""
    width = -(-queries // 8)
    for start in range(0, 2**queries, PERMUTATIONS_PER_BLOCK):
        numbers = np.arange(start, min(start + PERMUTATIONS_PER_BLOCK, 2**queries), dtype="<u8")
        yield (
            (numbers << np.uint64(8 * width - queries))
            .astype(">u8")
            .view(np.uint8)
            .reshape(-1, 8)[:, -width:]
        )


def signed_sums(columns: Array, blocks: Iterator[Bits]) -> Iterator[Array]:
    """For every block of sign bits the sums of the columns (queries x columns) under those signs.

    A byte of bits becomes eight signs by looking it up in a table, and signs times columns is one
    matrix product. The columns must be whole numbers.
    """
    signs_of_byte = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    buffer = np.empty((PERMUTATIONS_PER_BLOCK, BYTES_PER_TILE, 8))
    for bits in blocks:
        rows = len(bits)
        sums = np.zeros((rows, columns.shape[1]))
        for start in range(0, bits.shape[1], BYTES_PER_TILE):
            tile = bits[:, start : start + BYTES_PER_TILE]
            part = columns[8 * start : 8 * (start + BYTES_PER_TILE)]
            signs = buffer.reshape(-1)[: tile.size * 8].reshape(rows, tile.shape[1], 8)
            # mode="wrap" lets numpy write straight into the buffer; a byte is never out of range.
            np.take(signs_of_byte, tile, axis=0, out=signs, mode="wrap")
            sums += signs.reshape(rows, -1)[:, : len(part)] @ part
        yield sums


def random_places(places: int, rows: int, width: int, generator: np.random.PCG64) -> npt.NDArray[np.int64]:
    """rows x width random whole numbers below `places`, 32 random bits each (bias below places / 2**32)."""
    words = -(-width // 2)
    raw = generator.random_raw(rows * words).astype("<u8").view("<u4").reshape(rows, 2 * words)[:, :width]
    numbers: npt.NDArray[np.int64] = raw.astype(np.int64)
    numbers *= places
    numbers >>= 32
    return numbers


def resampled_sums(columns: Array, draws: int, seed: int) -> Array:
    """Sums of the columns (queries x columns) over `draws` bootstrap resamples of the queries.

    How often each query was drawn is a row of counts, and counts times columns is one matrix product,
    so all columns share the resamples. The columns must be whole numbers.
    """
    queries = len(columns)
    generator = np.random.PCG64(seed)
    sums = np.empty((draws, columns.shape[1]))
    block = max(1, RESAMPLED_PER_BLOCK // queries)
    for start in range(0, draws, block):
        rows = min(block, draws - start)
        drawn = random_places(queries, rows, queries, generator)
        drawn += np.arange(rows, dtype=np.int64)[:, None] * queries
        counts = np.bincount(drawn.reshape(-1), minlength=rows * queries).reshape(rows, queries)
        sums[start : start + rows] = counts.astype(np.float64) @ columns
    return sums
