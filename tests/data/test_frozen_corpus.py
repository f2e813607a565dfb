"""Frozen corpora: what is written comes back, and halves of two freezings are not taken for one."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from bertie.batch import Sample
from bertie.data.frozen_corpus import (
    CHECKSUMS,
    HELD_OUT,
    SAMPLES,
    FrozenCorpus,
    is_finished,
    is_frozen,
    is_writable,
    locked,
    verify_frozen,
    write_frozen_corpus,
)
from bertie.errors import FolderError
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer

TOKENIZER = wordpiece_tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "dog"])


def samples(*rows: list[int]) -> list[Sample]:
    return [{"tokens": np.array(row)} for row in rows]


def write(folder: Path, held_out: bool = True, seed: int = 0, tokenizer: Tokenizer = TOKENIZER) -> FrozenCorpus:
    held = samples([2, 6, 3]) if held_out else None
    return write_frozen_corpus(folder, samples([2, 5, 3], [2, 3]), held, tokenizer, 10, {"seed": seed})


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    made = write(tmp_path / "f")
    assert is_frozen(tmp_path / "f")
    opened = FrozenCorpus(tmp_path / "f")
    assert np.asarray(opened.samples.sample(0, 0, 0)["tokens"]).tolist() == [2, 5, 3]
    assert opened.held_out is not None and opened.held_out.num_samples == 1
    assert opened.digest == made.digest != write(tmp_path / "g", seed=1).digest
    loaded = load_tokenizer(tmp_path / "f" / "tokenizer")
    assert loaded is not None and loaded.digest == TOKENIZER.digest


def test_written_again_without_held_out_none_is_left(tmp_path: Path) -> None:
    write(tmp_path)
    assert write(tmp_path, held_out=False).held_out is None


def test_halves_of_two_freezings_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a")
    write(tmp_path / "b", seed=1)
    (tmp_path / "a" / HELD_OUT).replace(tmp_path / "b" / HELD_OUT)
    with pytest.raises(FolderError, match=r"1 broken: held-out\.arrow has"):
        FrozenCorpus(tmp_path / "b")


def test_every_changed_byte_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
        content = path.read_bytes()
        for place in range(0, len(content), 7):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
            with pytest.raises(FolderError, match=r"broken.*`overwrite`"):
                FrozenCorpus(tmp_path)
        path.write_bytes(content)
    assert FrozenCorpus(tmp_path).samples.num_samples == 2


def test_only_a_folder_of_its_own_is_written_to(tmp_path: Path) -> None:
    assert is_writable(tmp_path / "new") and is_writable(tmp_path)
    write(tmp_path)
    (tmp_path / CHECKSUMS).unlink()
    assert is_writable(tmp_path) and not is_finished(tmp_path), "what a kill left is finished by the next"
    with pytest.raises(FolderError, match="checksums are missing"):
        FrozenCorpus(tmp_path)
    (tmp_path / "thesis.tex").write_text("precious")
    assert not is_writable(tmp_path) and not is_writable(tmp_path / "thesis.tex")


def test_changed_bytes_are_found(tmp_path: Path) -> None:
    write(tmp_path)
    assert verify_frozen(tmp_path).endswith("2 frozen samples and 1 held-out ones are as they were written")
    content = bytearray((tmp_path / SAMPLES).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / SAMPLES).write_bytes(content)
    vocabulary = next((tmp_path / "tokenizer").iterdir())
    vocabulary.unlink()
    with pytest.raises(FolderError, match=r"2 broken: samples\.arrow has other bytes.*`overwrite`") as refusal:
        verify_frozen(tmp_path)
    assert f"tokenizer/{vocabulary.name} is missing" in str(refusal.value)
    (tmp_path / CHECKSUMS).unlink()
    with pytest.raises(FolderError, match="checksums are missing"):
        verify_frozen(tmp_path)


def test_a_full_disk_is_one_sentence_and_the_next_command_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "f"
    write(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(FolderError, match="the disk is full; free some space, then run it again"):
            write(folder, seed=1)
    assert not is_frozen(folder) and is_writable(folder)
    (folder / f"{SAMPLES}.7.part").write_text("what a kill left")
    write(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_foreign_unfinished_file_is_no_place_to_write(tmp_path: Path) -> None:
    (tmp_path / "video.mkv.part").write_text("precious")
    assert not is_writable(tmp_path)


def test_a_second_process_is_kept_out_and_its_lock_is_no_sample(tmp_path: Path) -> None:
    with locked(tmp_path / "f"):
        with pytest.raises(FolderError, match="another process is using"), locked(tmp_path / "f"):
            pass
        write(tmp_path / "f")
    assert "lock" not in (tmp_path / "f" / CHECKSUMS).read_text() and is_writable(tmp_path / "f")
