"""Training: the same counts give the same pieces in every process, and the pieces are those of the algorithm."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import tokenizers

from bertie.errors import InputError, SpecError
from bertie.text.vocab.training import fit, train
from bertie.text.vocab.vocab_options import KINDS, VocabOptions

COUNTS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}


def test_wordpiece_merges_the_most_frequent_pair_first() -> None:
    options = VocabOptions(size=17, special=())
    pieces = train(COUNTS, options).trained.pieces
    assert pieces[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert pieces[5:12] == ["b", "h", "p", "##g", "##n", "##s", "##u"]
    # ##u ##g 20, ##u ##n 16, then h ##ug 15, p ##un 12, p ##ug 5 before hug ##s 5: equal ones by their ids
    assert pieces[12:] == ["##ug", "##un", "hug", "pun", "pug"]


def test_wordpiece_finds_the_pieces_of_the_library(documents: list[str]) -> None:
    counts = Counter(word for text in documents for word in text.lower().replace(",", " ").replace("!", " ").split())
    counts = Counter({word: count for word, count in counts.items() if word.isascii() and word.isalnum()})
    pipeline = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    pipeline.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=10_000, min_frequency=30, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    )
    pipeline.train_from_iterator(counts.elements(), trainer)
    ours = train(counts, VocabOptions(size=10_000, min_frequency=30)).trained.pieces
    assert len(set(ours) & set(pipeline.get_vocab())) > 0.97 * len(ours)  # ties are broken otherwise


SCRIPT = """
import sys
from pathlib import Path
from bertie.text.vocab.building import train_vocabulary
from bertie.text.reading.documents import DocumentOptions
from bertie.text.vocab.vocab_options import KINDS, VocabOptions
if __name__ == "__main__":
    source, out, workers = sys.argv[1:]
    for kind in KINDS:
        # Only one kind needs to show that workers do not matter: counting is the same for all.
        options = VocabOptions(kind=kind, size=420, workers=int(workers) if kind == "byte-bpe" else 1, held_out=10)
        train_vocabulary([source], Path(out, kind), options, documents=DocumentOptions(slice_bytes=8000))
"""


def test_files_are_byte_identical_in_any_process(corpus_file: Path, tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(SCRIPT, encoding="utf-8")
    digests: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for run, (threads, parallel, workers) in enumerate(
        [("1", "false", 1), ("2", "true", 1), ("4", "true", 1), ("2", "true", 2), ("1", "true", 1)]
    ):
        out = tmp_path / f"out{run}"
        environment = {"RAYON_NUM_THREADS": threads, "TOKENIZERS_PARALLELISM": parallel, "PYTHONHASHSEED": str(run)}
        command = [sys.executable, str(script), str(corpus_file), str(out), str(workers)]
        subprocess.run(command, check=True, env=os.environ | environment)
        for kind, seen in digests.items():
            content = b"".join(file.name.encode() + file.read_bytes() for file in sorted((out / kind).iterdir()))
            seen.add(hashlib.sha256(content).hexdigest())
    assert {kind: len(seen) for kind, seen in digests.items()} == dict.fromkeys(KINDS, 1)


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_a_size_without_room_for_the_alphabet_is_refused(kind: str) -> None:
    with pytest.raises(
        SpecError, match=r"a vocabulary of 8 has no room for 5 special tokens and .* characters; give a `size`"
    ):
        train(COUNTS, VocabOptions(kind=kind, size=8))


def test_a_byte_vocabulary_needs_its_bytes() -> None:
    with pytest.raises(SpecError, match="5 special tokens and 256 bytes; give a `size` of at least 261"):
        train(COUNTS, VocabOptions(kind="byte-bpe", size=200))


def test_no_words_no_vocabulary() -> None:
    with pytest.raises(InputError, match="there is no text to train on"):
        train({}, VocabOptions())


def test_rare_characters_are_left_out_and_counted() -> None:
    training = train({**COUNTS, "hüg": 1}, VocabOptions(size=30))
    assert training.num_rare_characters == 1
    assert training.num_left_out == 1
    assert not any("ü" in piece for piece in training.trained.pieces)
    unigram = train({"▁hug": 10, "▁hüg": 1}, VocabOptions(kind="unigram", size=30))
    assert unigram.num_left_out == 0  # the parts around an unknown character still count
    assert unigram.trained.pieces.count("g") == 1


def test_most_frequent_words_and_characters() -> None:
    words = train({"b": 3, "a": 3, "c": 9, "d": 1}, VocabOptions(kind="words", size=7)).trained.pieces
    assert words[5:] == ["c", "a"]
    characters = train({"cab": 3, "c": 9, "d": 1}, VocabOptions(kind="characters", size=100)).trained.pieces
    assert characters[5:] == ["c", "a", "b"]


def test_memory_keeps_the_most_frequent() -> None:
    counts = {f"w{number:06}": number for number in range(1, 300_000)}
    used = fit(counts, counts, num_symbols=900_000)
    assert len(used) == 100_000
    assert min(used.values()) == len(counts) - len(used) + 1
