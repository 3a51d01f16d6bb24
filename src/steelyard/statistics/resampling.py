"""The two random engines: sign flips and bootstrap resamples, each a matrix product per block.

Random bits come raw from PCG64, whose stream numpy keeps stable between versions, and every sum is over
whole numbers (see `exact`). The same seed therefore gives the same sums to the bit, whatever the
processor, the number of threads or the version of numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steelyard.statistics.arrays import Array
from steelyard.statistics.products import in_threads, product

# 1,024 sign vectors x 64 bytes of signs as float32 are 2 MB: a tile that stays in a core's cache.
VECTORS_PER_BLOCK = 1024
BYTES_PER_TILE = 64
# Halves of 15 bits summed over the 2**9 queries of a tile stay within the 2**24 that float32 holds exactly.
SIGNED_BITS = 30
HALF = 2.0 ** (SIGNED_BITS // 2)
RESAMPLED_PER_BLOCK = 2**19

Bits = npt.NDArray[np.uint8]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SignVectors:
    """Many vectors of signs, one sign per query: random ones, or with no seed all 2**queries of them."""

    queries: int
    count: int
    seed: int | None

    @staticmethod
    def random(queries: int, count: int, seed: int) -> SignVectors:
        """`count` random vectors."""
        return SignVectors(queries, count, seed)

    @staticmethod
    def every(queries: int) -> SignVectors:
        """All vectors once, for few queries."""
        return SignVectors(queries, 2**queries, None)

    def bits(self, start: int, stop: int) -> Bits:
        """The vectors from start (a multiple of 8) to stop as bits, a row each, eight queries to a byte."""
        width = -(-self.queries // 8)
        rows = stop - start
        if self.seed is None:
            numbers = np.arange(start, stop, dtype=np.uint64) << np.uint64(8 * width - self.queries)
            bytes_: Bits = numbers.astype(">u8").view(np.uint8).reshape(rows, 8)
            return bytes_[:, -width:]
        generator = np.random.PCG64(self.seed)
        generator.advance(start * width // 8)
        words = generator.random_raw(-(-rows * width // 8)).astype("<u8")
        return words.view(np.uint8)[: rows * width].reshape(rows, width)


def tally_signed_sums(columns: Array, vectors: SignVectors, tally: Callable[[Array], Counts]) -> Counts:
    """The sum of tally(sums) over blocks of sums of the columns (queries x columns) under sign vectors.

    The columns must be whole numbers of at most 30 bits: they are split into an upper and a lower half, so
    that the product can be in float32, at twice the speed, and still be exact.
    """
    upper = np.rint(columns / HALF)
    halves = np.hstack([upper, columns - upper * HALF]).astype(np.float32)

    def one_block(start: int) -> Counts:
        sums = signed_sums(halves, vectors.bits(start, min(start + VECTORS_PER_BLOCK, vectors.count)))
        return tally(sums)

    counts = in_threads(one_block, range(0, vectors.count, VECTORS_PER_BLOCK))
    total: Counts = np.sum(counts, axis=0)
    return total


def signed_sums(halves: npt.NDArray[np.float32], bits: Bits) -> Array:
    """Sums of the columns under each row of bits; a byte becomes eight signs by a look into a table."""
    every_byte = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    signs_of_byte = np.float32(1.0) - np.float32(2.0) * every_byte.astype(np.float32)
    rows, width = bits.shape
    buffer = np.empty(rows * min(width, BYTES_PER_TILE) * 8, dtype=np.float32)
    sums = np.zeros((rows, halves.shape[1]))
    for start in range(0, width, BYTES_PER_TILE):
        tile = bits[:, start : start + BYTES_PER_TILE]
        part = halves[8 * start : 8 * (start + BYTES_PER_TILE)]
        signs = buffer[: tile.size * 8].reshape(rows, tile.shape[1], 8)
        # mode="wrap" lets numpy write straight into the buffer; a byte is never out of range.
        np.take(signs_of_byte, tile, axis=0, out=signs, mode="wrap")
        sums += product(signs.reshape(rows, -1)[:, : len(part)], part)
    upper, lower = np.hsplit(sums, 2)
    return upper * HALF + lower


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

    How often each query was drawn is a row of counts, and counts times columns is a matrix product, so
    all columns share the resamples. The columns must be whole numbers.
    """
    queries = len(columns)
    words = -(-queries // 2)
    block = max(1, RESAMPLED_PER_BLOCK // queries)

    def one_block(start: int) -> Array:
        rows = min(block, draws - start)
        generator = np.random.PCG64(seed)
        generator.advance(start * words)
        drawn = random_places(queries, rows, queries, generator)
        drawn += np.arange(rows, dtype=np.int64)[:, None] * queries
        counts = np.bincount(drawn.reshape(-1), minlength=rows * queries).reshape(rows, queries)
        return product(counts.astype(np.float64), columns)

    return np.concatenate(in_threads(one_block, range(0, draws, block)))
