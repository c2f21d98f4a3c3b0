"""Operations on sparse matrices: scale rows, leave entries out, use all cores."""

import itertools
from collections.abc import Callable

import numpy as np

from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.parallel import map_in_threads

_CELLS_AT_ONCE = 1 << 21  # of one thread, which bounds memory
_ROWS_AT_ONCE = 2000  # the same


def ends_of(lengths: np.ndarray) -> np.ndarray:
    """Where the entries of each row begin, and the last end, `[rows + 1]`: int32 if they fit."""
    # SciPy would copy 32-bit columns to 64 bits for ends of 64 bits.
    fit = np.sum(lengths, dtype=np.int64) <= np.iinfo(np.int32).max
    ends = np.zeros(len(lengths) + 1, np.int32 if fit else np.int64)
    np.cumsum(lengths, out=ends[1:], dtype=ends.dtype)
    return ends


def by_rows(function: Callable[[slice], sp.csr_array], rows: int) -> sp.csr_array:
    """Stacks the matrices that a function has for slices of rows, computed in threads."""
    if rows <= _ROWS_AT_ONCE:
        return function(slice(0, rows))
    begins = range(0, rows, _ROWS_AT_ONCE)
    slices = (slice(begin, begin + _ROWS_AT_ONCE) for begin in begins)
    parts = list(map_in_threads(function, slices))
    shape, first = (rows, parts[0].shape[1]), parts[0]
    ends = ends_of(np.concatenate([np.diff(part.indptr) for part in parts]))
    data, indices = np.empty(ends[-1], first.dtype), np.empty(ends[-1], ends.dtype)
    del first
    for begin in reversed(range(len(parts))):  # each part is let go when it is copied
        part, begin = parts.pop(), ends[begin * _ROWS_AT_ONCE]
        data[begin : begin + part.nnz], indices[begin : begin + part.nnz] = part.data, part.indices
    return sp.csr_array((data, indices, ends), shape=shape)


def entry_rows(table: sp.csr_array) -> np.ndarray:
    """`[entries]`, the row of each entry of a sparse matrix."""
    return np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))


def kept_entries(table: sp.csr_array, kept: np.ndarray) -> sp.csr_array:
    """A matrix with some of its entries, by `[entries]` bool in the order of its data."""
    parts = table.data[kept], table.indices[kept], ends_of(kept)[table.indptr]
    return sp.csr_array(parts, shape=table.shape)


def largest_of_rows(table: sp.csr_array, most: int) -> sp.csr_array:
    """A matrix with at most so many entries in each row, the largest ones."""
    rows = entry_rows(table)
    order = np.lexsort((-table.data, rows))  # which leaves rows where they are
    kept = np.empty(len(rows), bool)
    kept[order] = np.arange(len(rows)) - table.indptr[rows] < most
    return kept_entries(table, kept)


def cells(
    ends: np.ndarray, columns: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of the cells that values are in, in order, and the cell of each value."""
    # All int32. Several values, `columns` below `size`, may share a cell; `ends` are those of rows.
    places = np.empty(len(columns), np.int32)
    steps = np.searchsorted(ends, np.arange(0, ends[-1], _CELLS_AT_ONCE))
    steps = np.append(steps, len(ends) - 1)

    def of_rows(step: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        begin, end = step
        part = slice(ends[begin], ends[end])
        own_ends = (ends[begin : end + 1] - ends[begin]).astype(np.int32)
        values = np.arange(own_ends[-1], dtype=np.int32), columns[part], own_ends
        # From rows to columns to rows: two counting sorts, in compiled code.
        ordered = sp.csr_array(values, shape=(end - begin, size)).tocsc().tocsr()
        rows = np.repeat(np.arange(begin, end, dtype=np.int32), np.diff(own_ends))
        first = np.ones(len(rows), bool)  # unlike the place before it
        first[1:] = (np.diff(rows) != 0) | (np.diff(ordered.indices) != 0)
        places[part][ordered.data] = np.cumsum(first, dtype=np.int32) - 1
        return rows[first], ordered.indices[first]

    parts, total = [(np.zeros(0, np.int32),) * 2], 0
    pairs = itertools.pairwise(steps.tolist())
    for (begin, end), part in zip(itertools.pairwise(steps), map_in_threads(of_rows, pairs)):
        places[ends[begin] : ends[end]] += total
        parts.append(part)
        total += len(part[0])
    rows, columns = map(np.concatenate, zip(*parts))
    return rows, columns, places


def largest_of_groups(table: sp.csr_array, firsts: np.ndarray | None) -> sp.csr_array:
    """The largest entry of each column in each group of rows, `[groups, columns]`."""
    # `firsts`, `[groups + 1]`, are where those of each begin; None for groups of one row.
    if firsts is None:
        return table
    groups = np.repeat(np.arange(len(firsts) - 1), np.diff(firsts))[entry_rows(table)]
    order = np.lexsort((table.data, table.indices, groups))
    groups, columns = groups[order], table.indices[order]
    last = np.append((np.diff(groups) != 0) | (np.diff(columns) != 0), len(order) > 0)[: len(order)]
    places = groups[last], columns[last]
    shape = len(firsts) - 1, table.shape[1]
    return sp.csr_array((table.data[order][last], places), shape=shape)


def rows_of_1(table: sp.csr_array) -> sp.csr_array:
    """A table whose rows are scaled to a sum of 1, but for empty ones; float32."""

    def scaled(rows: slice) -> sp.csr_array:
        part = table[rows]
        sums = np.asarray(part.sum(axis=1, dtype=np.float64)).ravel()
        scale = np.divide(1, sums, out=np.zeros_like(sums), where=sums > 0)
        part.data = (part.data * scale[entry_rows(part)]).astype(np.float32)
        return part

    return by_rows(scaled, table.shape[0])


def unit_rows(vectors: sp.csr_array) -> sp.csr_array:
    """Vectors scaled to a length of 1, but for empty ones; float32."""
    lengths = np.sqrt(np.asarray(vectors.power(2).sum(axis=1)).ravel())
    scale = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return sp.csr_array(sp.diags_array(scale.astype(np.float32)) @ vectors)


def inverted(table: sp.csr_array, shares: np.ndarray) -> sp.csr_array:
    """P(from | to) by Bayes' rule from P(to | from), `[from words, to words]`, and P(from)."""
    joint = sp.csr_array((sp.diags_array(shares) @ table).T)
    return rows_of_1(joint)
