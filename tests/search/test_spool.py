"""The parts that crash safety rests on: a header of fixed length, and files that are replaced whole or not at all."""

import io
from pathlib import Path

import numpy as np
import pytest

from bertie.errors import UserError
from bertie.search.spool import Journal, Spool, npy_header


@pytest.mark.parametrize("dtype", ["<f4", "<f2"])
@pytest.mark.parametrize("width", [1, 384, 30_522])
def test_the_header_keeps_its_length_whatever_the_number_of_rows(dtype: str, width: int) -> None:
    lengths = {len(npy_header(rows, width, np.dtype(dtype))) for rows in (0, 9, 10**6, 10**12)}
    assert len(lengths) == 1
    read = np.load(io.BytesIO(npy_header(2, width, np.dtype(dtype)) + bytes(2 * width * np.dtype(dtype).itemsize)))
    assert read.shape == (2, width) and read.dtype == np.dtype(dtype)


def test_rows_and_journal_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    before = Journal(source="a.txt", settings={"pooling": "mean", "max_length": 8, "normalize": True, "layers": None})
    after = before.model_copy(update={"width": 3, "num_texts": 4, "seconds": 0.5})
    with Spool(tmp_path / "v.npy", "float32") as spool:
        after = spool.append(rows, before, after)
        np.testing.assert_array_equal(spool.read_rows(1, 2, 3), rows[1:3])
        assert spool.read_journal() == after
        assert after.differences(dict(after.settings)) == []
        assert after.differences({"pooling": "max", "max_length": 8, "normalize": True}) == [
            "pooling was 'mean' and is now 'max'"
        ]


def test_damaged_rows_and_a_damaged_journal_are_not_continued(tmp_path: Path) -> None:
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    before = Journal(source="a.txt", settings={})
    with Spool(tmp_path / "v.npy", "float32") as spool:
        after = spool.append(rows, before, before.model_copy(update={"width": 3, "num_texts": 4}))
        spool.rewind(after)
        content = bytearray(spool.part.read_bytes())
        content[-5] ^= 1
        spool.part.write_bytes(content)
        with pytest.raises(UserError, match=r"v\.npy\.part: the rows .* were changed; give `restart`"):
            spool.rewind(after)
        journal = spool.journal_path.read_bytes()
        spool.journal_path.write_bytes(journal.replace(b'"num_texts": 4', b'"num_texts": 3'))
        with pytest.raises(UserError, match="the journal cannot be read; give `restart`"):
            spool.read_journal()
