"""The draw of texts: fixed, a third of each source, no text lost to the file format."""

import gzip
import json
from pathlib import Path

import pytest
from benchmarks.texts import mixed_texts

from bertie.errors import InputError


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for folder in ("stsb", "sst2"):
        (tmp_path / folder).mkdir()
    pairs = [f'genre\tfile\tyear\t{row}\t5.0\tsts "{row}\tsts other {row}' for row in range(20)]
    (tmp_path / "stsb" / "sts-train.tsv").write_text("\n".join(pairs), encoding="utf-8")
    rows = ["sentence\tlabel", *(f"sst {row} \t1" for row in range(20)), "sst 0 \t1"]
    (tmp_path / "sst2" / "train_full.tsv").write_text("\n".join(rows), encoding="utf-8")
    with gzip.open(tmp_path / "en_wiki.jsonl.gz", "wt", encoding="utf-8") as stream:
        for row in range(10):
            stream.write(json.dumps({"title": str(row), "text": f"wiki {row}\n\nwiki paragraph {row}"}) + "\n")
    return tmp_path


def test_each_source_gives_a_third(data: Path) -> None:
    texts = mixed_texts(data, 20)
    assert len(texts) == len(set(texts)) == 20
    counts = [sum(text.startswith(source) for text in texts) for source in ("sts ", "sst ", "wiki ")]
    assert counts == [7, 7, 6]


def test_the_draw_is_the_same_each_time_and_mixed(data: Path) -> None:
    texts = mixed_texts(data, 30)
    assert texts == mixed_texts(data, 30)
    assert texts != sorted(texts, key=lambda text: text.split()[0])


def test_all_that_is_there_can_be_drawn(data: Path) -> None:
    texts = mixed_texts(data, 60)
    assert {text for text in texts if text.startswith("sst")} == {f"sst {row}" for row in range(20)}
    assert 'sts "3' in mixed_texts(data, 60) or "sts other 3" in texts


def test_more_texts_than_there_are_is_refused(data: Path) -> None:
    with pytest.raises(InputError, match="only 60 texts can be drawn, not 63"):
        mixed_texts(data, 63)


def test_missing_data_is_said(data: Path) -> None:
    (data / "en_wiki.jsonl.gz").unlink()
    with pytest.raises(InputError, match=r"en_wiki\.jsonl\.gz: the benchmark's text is missing; give its folder"):
        mixed_texts(data, 3)


def test_the_real_text_has_short_and_long_ones(shared: Path) -> None:
    lengths = [len(text.split()) for text in mixed_texts(shared / "data", 300)]
    assert min(lengths) <= 3
    assert max(lengths) > 150
