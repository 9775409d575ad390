"""The judgements of one of several processes that infer together: those of its own items.

Items are dealt in blocks, one a process. A judgement is kept by each process that owns one of its
two items, so that all judgements of an item are in one place, in the order of the file: sums over
them are then the very numbers of one process. What is known of all items is gathered block by
block. No process holds all judgements, nor reads them at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError
from likewise.io.memory import release_freed
from likewise.io.sniffing import file_kind
from likewise.io.tables import CsvTable, ParquetTable
from likewise.pairs import edges
from likewise.pairs.closure import ENOUGH, count_closed
from likewise.pairs.columns import BoolArray, IndexArray, index_dtype
from likewise.pairs.container import Pairs
from likewise.pairs.formats import read_pairs
from likewise.pairs.formats.long import ColumnNames, Items, read_long
from likewise.pairs.formats.paths import path_errors

if TYPE_CHECKING:
    import pyarrow as pa

Rows = TypeVar("Rows", bound=np.generic)


class Exchange(Protocol):
    """Processes that each know something of their own items, and tell the others."""

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""

    @property
    def world(self) -> int:
        """How many there are."""

    def gather_rows(self, local: NDArray[Rows]) -> NDArray[Rows]:
        """(n, ...) the rows of all processes, in the order of these."""


class Alone:
    """One process, which knows everything."""

    rank, world = 0, 1

    def gather_rows(self, local: NDArray[Rows]) -> NDArray[Rows]:
        return local


ALONE = Alone()


def own_items(n_items: int, exchange: Exchange) -> slice:
    """The block of items that is this process's."""
    bounds = [n_items * k // exchange.world for k in (exchange.rank, exchange.rank + 1)]
    return slice(bounds[0], bounds[1])


class PairShard(Pairs):
    """The judgements of a process's own items, behind `Pairs`; its length is theirs.

    `components` and `is_consistent` are of all judgements; all processes must ask together.
    """

    exchange: Exchange
    """The processes, and what they tell each other."""
    total: int
    """Judgements that all of them have between them."""
    read_all: Callable[[], Pairs]
    """Reads all judgements, for what cannot be done in shards."""

    @classmethod
    def of(cls, pairs: Pairs, exchange: Exchange, read_all: Callable[[], Pairs]) -> PairShard:
        """The share of ``pairs``, which hold the judgements of the process's items, if not more."""
        own = own_items(pairs.n_items, exchange)
        ours, theirs = within(pairs.left, own), within(pairs.right, own)
        kept = pairs if bool((ours | theirs).all()) else pairs.select(ours | theirs)
        made = cls.__new__(cls)
        made._set(dict(vars(kept)))
        made._set({"exchange": exchange, "read_all": read_all})
        made._set({"total": summed(exchange, int(np.count_nonzero(ours)))})
        return made

    def select(self, mask: ArrayLike) -> Pairs:
        return PairShard.of(super().select(mask), self.exchange, self.read_all)

    def components(self) -> NDArray[np.int32]:
        local = self.graph.component
        # A node for each item and one for each component that a process has found.
        found = self.exchange.gather_rows(local[None].astype(np.int64))
        world, n_items = found.shape
        nodes = found + n_items * np.arange(1, world + 1)[:, None]
        item = np.tile(np.arange(n_items), world)
        joined = edges.components(item, nodes.ravel(), n_items * (world + 1))[:n_items]
        return np.unique(joined, return_inverse=True)[1].astype(np.int32)

    def is_consistent(self) -> bool:
        graph, own = self.graph, own_items(self.n_items, self.exchange)
        apart = ~graph.same & within(graph.left, own)
        inside = edges.count_inside(self.components(), graph.left, graph.right, apart)
        return summed(self.exchange, inside) == 0


def exchange_of(pairs: Pairs) -> Exchange:
    """The processes that have these judgements between them."""
    return pairs.exchange if isinstance(pairs, PairShard) else ALONE


def total_of(pairs: Pairs) -> int:
    """How many judgements there are, those of other processes counted too, each once."""
    return pairs.total if isinstance(pairs, PairShard) else len(pairs)


def same_of(pairs: Pairs) -> int:
    """How many of these say "same"."""
    if not isinstance(pairs, PairShard):
        return pairs.n_same
    own = own_items(pairs.n_items, pairs.exchange)
    return summed(pairs.exchange, int(np.count_nonzero(pairs.same & within(pairs.left, own))))


def whole(pairs: Pairs) -> Pairs:
    """All judgements, in one place: read again where they were shared out."""
    return pairs.read_all() if isinstance(pairs, PairShard) else pairs


def summed(exchange: Exchange, count: int) -> int:
    """A number that every process has counted, added up."""
    return int(exchange.gather_rows(np.array([count], np.int64)).sum())


def read_shard(
    path: str | Path,
    exchange: Exchange,
    *,
    n_items: int,
    item_ids: ArrayLike | None = None,
    **columns: str,
) -> Pairs:
    """The judgements of this process's items in a file, which is read batch by batch.

    Items are known by their positions in a CSV or Parquet file for that; other files are read
    whole and then cut. Where people have sorted items, all judgements are returned: parts of sorts
    are no sorts.
    """
    names = ColumnNames(**columns)

    def read_all() -> Pairs:
        release_freed()
        plain = None if item_ids is not None else _own_rows_of(Path(path), ALONE, n_items, names)
        return plain or read_pairs(
            path,
            left=names.left,
            right=names.right,
            same=names.same,
            annotator=names.annotator,
            weight=names.weight,
            n_items=n_items,
            item_ids=item_ids,
            may_lack=True,
        )

    found = None if item_ids is not None else _own_rows_of(Path(path), exchange, n_items, names)
    shard = PairShard.of(read_all() if found is None else found, exchange, read_all)
    if shard.annotator is None:
        return shard
    return read_all() if _may_be_sorts(shard) else with_all_people(shard)


def _may_be_sorts(shard: PairShard) -> bool:
    """As `likewise.pairs.closure.may_be_sorts`, by what all processes see of their own items."""
    if shard.weight is not None:
        return False
    tried, closed = count_closed(shard, own_items(shard.n_items, shard.exchange))
    tried, closed = summed(shard.exchange, tried), summed(shard.exchange, closed)
    return closed >= ENOUGH * tried


def with_all_people(shard: PairShard) -> PairShard:
    """With everybody's name and number, those whom other processes have met included."""
    names = [] if shard.annotator_names is None else shard.annotator_names.tolist()
    told = "".join(json.dumps(name) + "\n" for name in names).encode()
    heard = shard.exchange.gather_rows(np.frombuffer(told, np.uint8)).tobytes()
    everybody = np.array(sorted({json.loads(line) for line in heard.splitlines()}), np.str_)
    number = np.searchsorted(everybody, names).astype(np.int32)
    shard._set({"annotator_names": everybody, "annotator": number[shard.annotator]})
    return shard


def _own_rows_of(path: Path, exchange: Exchange, n_items: int, names: ColumnNames) -> Pairs | None:
    """From a table whose ids are positions, without its other rows; None where it is none."""
    with path_errors(path):
        kind = file_kind(path)
    if kind not in ("csv", "parquet"):
        return None
    table = _OwnParquet(path) if kind == "parquet" else _OwnCsv(path)
    if not {names.left, names.right, names.same} <= set(table.columns):
        return None
    table.share = _Share((names.left, names.right), own_items(n_items, exchange), n_items)
    try:
        return read_long(table, names, Items(count=n_items))
    except InputError:  # of a row, whose number is another one in the whole file
        return None
    finally:
        release_freed()


class _Share:
    """Which rows of a table of judgements name an item of a block."""

    def __init__(self, ends: tuple[str, str], own: slice, n_items: int) -> None:
        self.ends, self.own, self.n_items = ends, own, n_items

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Those rows, and those that are wrong; all of them where ids are no numbers."""
        import pyarrow as pa

        keep, numbers = np.zeros(len(batch), bool), {}
        for end in self.ends:
            column = batch.column(end)
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            try:
                # In as many bytes as `Pairs` will keep; a number past them is for others to refuse.
                numbers[end] = column.cast(pa.from_numpy_dtype(index_dtype(self.n_items)))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                return batch
            if column.null_count:
                return batch
            number = numbers[end].to_numpy(zero_copy_only=False)
            keep |= within(number, self.own) | (number < 0) | (number >= self.n_items)
        columns = {name: numbers.get(name, batch.column(name)) for name in batch.schema.names}
        return pa.record_batch(columns).filter(pa.array(keep))


class _OwnParquet(ParquetTable):
    """A Parquet file of which only some rows are read."""

    batch_rows = 1 << 14  # what is not kept should not be held either
    share: _Share

    def batches(self, names: Sequence[str], text: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return map(self.share.of, super().batches(names, text))


class _OwnCsv(CsvTable):
    """A CSV file of which only some rows are read."""

    share: _Share

    def batches(self, names: Sequence[str], text: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return map(self.share.of, super().batches(names, text))


def within(index: IndexArray, block: slice) -> BoolArray:
    """(n,) which of the items (n,) are in a block."""
    return np.asarray((index >= block.start) & (index < block.stop))
