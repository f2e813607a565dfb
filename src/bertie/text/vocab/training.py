"""Turns word counts into pieces in a canonical order: the same counts give the same pieces with the same ids, always.

What varies in the libraries, and the way around it (measured with tokenizers 0.23.3):

- WordPiece is BPE over characters, where a character inside a word ("##a") differs from one that begins it ("a").
  `tokenizers` numbers the "##" characters in the order of a randomly seeded hash map and breaks ties by these numbers.
  Here every such character is one code point of a private plane, in sorted order, and the trainer of plain BPE, which
  numbers single characters by code point, sees nothing else. Its merges did not vary with runs and threads.
- `tokenizers` sums Unigram's likelihoods in random order. `sentencepiece` does not, for a fixed number of threads, and
  takes counts. One thread is fixed here.
"""

import io
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import sentencepiece
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from bertie.errors import InputError, SpecError
from bertie.text.tokenizers.vocabulary import MAX_CHARACTERS_PER_WORD
from bertie.text.vocab.counting import BASE_BYTES, HELD_OUT_SHARE, entry_bytes, place_of
from bertie.text.vocab.pipelines import SPACE, Trained
from bertie.text.vocab.vocab_options import VocabOptions

PRIVATE = 0xF0000  # two planes without meaning: 131,068 code points
PRIVATE_SIZE = 0xFFFE
CONTINUES = "##"
FED_AT_ONCE = 32_768  # characters of one text that the trainer counts: copies of a word
# What a trainer holds for each character of a distinct word and for each piece, measured with real and random words.
# Text without spaces is the dearest for Unigram: nearly every substring is a piece to begin with.
SYMBOL_BYTES = {"wordpiece": 150, "byte-bpe": 150, "unigram": 480}
PIECE_BYTES = 1000
LONGEST_WORD = 500  # characters; `sentencepiece` would skip longer ones in silence, so they are fed in parts


@dataclass(frozen=True)
class Training:
    """Pieces, and which words they were trained on."""

    trained: Trained
    num_words: int  # distinct
    num_left_out: int  # occurrences of words that were too rare for the memory, too long, or of unknown characters
    num_rare_characters: int  # distinct characters under the minimum frequency: they will be unknown


def train(counts: Mapping[str, int], options: VocabOptions) -> Training:
    total = sum(counts.values())
    if not total:
        raise InputError("there is no text to train on", hint="give files that hold words")
    room = trainer_room(counts, options)
    characters = count_characters(counts)
    known = {letter for letter, count in characters.items() if count >= options.min_frequency} | {SPACE}
    if options.kind == "byte-bpe":
        known = set(pre_tokenizers.ByteLevel.alphabet())
    if options.kind == "unigram":  # an unknown character is unknown alone; in a WordPiece the whole word is
        counts = without_unknown(counts, known)
        total = sum(counts.values())
    if options.kind in TRAINERS:
        fitting = (word for word in counts if known.issuperset(word) and not is_too_long(word, options.kind))
        used: Mapping[str, int] = fit(fitting, counts, room // SYMBOL_BYTES[options.kind])
        trained, left_out = TRAINERS[options.kind](used, options), total - sum(used.values())
    else:
        used, left_out = counts, 0
        trained = most_frequent(characters if options.kind == "characters" else counts, options)
    return Training(trained, len(used), left_out, len(characters.keys() - known))


def trainer_room(counts: Mapping[str, int], options: VocabOptions) -> int:
    """Bytes that counting left for a trainer. The counts are held twice: to choose from them they are sorted, and
    that memory does not go back."""
    held, room = sum(map(entry_bytes, counts)), options.ram - BASE_BYTES
    return max(room - room // HELD_OUT_SHARE - 2 * held - options.size * PIECE_BYTES, room // 4)


def is_too_long(word: str, kind: str) -> bool:
    """WordPiece gives up on such words, whatever the vocabulary."""
    return kind == "wordpiece" and len(word) > MAX_CHARACTERS_PER_WORD


def without_unknown(counts: Mapping[str, int], known: set[str]) -> Counter[str]:
    """Words cut at unknown characters."""
    parts: Counter[str] = Counter()
    for word, count in counts.items():
        if known.issuperset(word):
            parts[word] += count
            continue
        cut = "".join(letter if letter in known else "\n" for letter in word)
        for part in cut.split("\n"):
            parts[part] += count if part else 0
    del parts[""]
    return parts


def count_characters(counts: Mapping[str, int]) -> Counter[str]:
    characters: Counter[str] = Counter()
    for word, count in counts.items():
        for letter in word:
            characters[letter] += count
    return characters


def by_count(counts: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """The most frequent first, equal ones by their text."""
    return sorted(counts, key=lambda item: (-item[1], item[0]))


def fit(words: Iterable[str], counts: Mapping[str, int], num_symbols: int) -> dict[str, int]:
    """The most frequent words that have at most so many characters in all; of equally frequent ones a sample that is
    always the same.

    Text without spaces has mostly words that occur once, so the sample must not prefer any letters.
    """
    used: dict[str, int] = {}
    for word in sorted(words, key=lambda word: (-counts[word], place_of(word), word)):
        num_symbols -= len(word) + 2
        if num_symbols < 0:
            break
        used[word] = counts[word]
    return used


def most_frequent(counts: Mapping[str, int], options: VocabOptions) -> Trained:
    special = options.all_special
    room = options.size - len(special)
    if room < 1:
        raise too_small(options, len(special) + 1, "the special tokens and one piece")
    ranked = [piece for piece, count in by_count(counts.items()) if count >= options.min_frequency]
    return Trained([*special, *[piece for piece in ranked if piece not in special][:room]])


def train_wordpiece(counts: Mapping[str, int], options: VocabOptions) -> Trained:
    alphabet = sorted({(index > 0, letter) for word in counts for index, letter in enumerate(word)})
    check_size(options, len(alphabet), "characters")
    codes = {symbol: private(number) for number, symbol in enumerate(alphabet)}
    first = {letter: code for (inside, letter), code in codes.items() if not inside}
    later = str.maketrans({letter: code for (inside, letter), code in codes.items() if inside})
    coded = ((first[word[0]] + word[1:].translate(later), count) for word, count in counts.items())
    found, _ = merge(coded, options, sorted(codes.values()))
    letters = {code: symbol for symbol, code in codes.items()}
    pieces = []
    for piece in found:
        inside = letters[piece[0]][0]
        pieces.append((CONTINUES if inside else "") + "".join(letters[code][1] for code in piece))
    special = options.all_special
    return Trained([*special, *[piece for piece in pieces if piece not in special]])


def private(number: int) -> str:
    if number >= 2 * PRIVATE_SIZE:
        raise InputError(f"the text has more than {2 * PRIVATE_SIZE:,} different characters", hint="clean it first")
    plane, place = divmod(number, PRIVATE_SIZE)
    return chr(PRIVATE + (plane << 16) + place)


def train_byte_bpe(counts: Mapping[str, int], options: VocabOptions) -> Trained:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    check_size(options, len(alphabet), "bytes")
    pieces, merges = merge(counts.items(), options, alphabet)
    return Trained([*options.all_special, *pieces], merges)


def merge(
    counts: Iterable[tuple[str, int]], options: VocabOptions, alphabet: list[str]
) -> tuple[list[str], list[tuple[str, str]]]:
    """BPE: the alphabet, then what each merge made, and the merges."""
    pipeline = tokenizers.Tokenizer(models.BPE())
    pipeline.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=options.size - len(options.all_special),
        min_frequency=options.min_frequency,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    pipeline.train_from_iterator(repeated(counts), trainer)
    model = json.loads(pipeline.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return pieces, [(left, right) for left, right in model["merges"]]


def repeated(counts: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Each word as often as it was counted: the trainer takes no counts."""
    for word, count in counts:
        at_once = max(1, FED_AT_ONCE // (len(word) + 1))
        whole, rest = divmod(count, at_once)
        if whole:
            text = (word + " ") * at_once
            for _ in range(whole):
                yield text
        yield (word + " ") * rest


def train_unigram(counts: Mapping[str, int], options: VocabOptions) -> Trained:
    alphabet = set().union(*map(set, counts)) | {SPACE}
    check_size(options, len(alphabet), "characters")
    special = options.all_special
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8", delete=False) as file:
        for word, count in counts.items():
            # The mark is written as the space that it stands for.
            text = word.replace(SPACE, " ")
            for start in range(0, len(text), LONGEST_WORD):
                file.write(f"{text[start : start + LONGEST_WORD]}\t{count}\n")
    try:
        sentencepiece.SentencePieceTrainer.train(
            input=file.name,
            input_format="tsv",
            model_writer=model,
            model_type="unigram",
            vocab_size=options.size - len(special) + 1,  # its own unknown piece
            hard_vocab_limit=False,
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            character_coverage=1.0,
            bos_id=-1,
            eos_id=-1,
            num_threads=1,
            minloglevel=2,
        )
    finally:
        Path(file.name).unlink()
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    # Few digits: the library's reader of tokenizer.json gets the last of seventeen wrong, and the digest with it.
    found = [(processor.id_to_piece(id), round(processor.get_score(id), 6)) for id in range(1, len(processor))]
    found = sorted((item for item in found if item[0] not in special), key=lambda item: (-item[1], item[0]))
    return Trained([*special, *(piece for piece, _ in found)], scores=[*[0.0] * len(special), *(s for _, s in found)])


def check_size(options: VocabOptions, num_symbols: int, what: str) -> None:
    least = len(options.all_special) + num_symbols
    if options.size < least:
        raise too_small(options, least, f"{len(options.all_special)} special tokens and {num_symbols:,} {what}")


def too_small(options: VocabOptions, least: int, needed: str) -> SpecError:
    return SpecError(
        f"a vocabulary of {options.size:,} has no room for {needed}",
        hint=f"give a `size` of at least {least:,}, or a higher `min_frequency`",
    )


TRAINERS = {"wordpiece": train_wordpiece, "byte-bpe": train_byte_bpe, "unigram": train_unigram}
