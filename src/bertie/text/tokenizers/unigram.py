"""The Tokenizer of a spiece.model, by `sentencepiece` itself.

Text -> quotes, accents and case by the settings -> the model's own normalizer and pieces -> special tokens.
The defaults are those of the encoders that ship a bare spiece.model: lower case, no accents, and numbers kept apart
from the comma after them ("1,000," ends in a piece of its own for the comma).
"""

import hashlib
import itertools
import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import sentencepiece

from bertie.errors import TokenizerError
from bertie.json_files import LARGEST_VOCABULARY, read_regular
from bertie.text.confusable_words import ConfusableWords
from bertie.text.reading.plain_text import PlainText, prepare
from bertie.text.reading.valid_text import are_strings, check_texts
from bertie.text.tokenizers.continuation import continuations
from bertie.text.tokenizers.pipeline import CONVENTIONAL, no_such_id
from bertie.text.tokenizers.settings import ROLES, Settings
from bertie.text.tokenizers.tokenizer_writing import kept_settings, write_config
from bertie.text.tokenizers.tokens import FlatIds, SpecialTokens, Tokens
from bertie.text.tokenizers.truncation import longest_first, room_for_text, truncate_flat

SPACE = "▁"  # how the model writes a space before a piece
CHUNK = 4096

Piece = tuple[int, int, int, bool]  # id, begin, end, whether it starts a word


class SentencePieceTokenizer:
    """The Tokenizer over a `sentencepiece` model."""

    kind = "unigram"
    confusable = ConfusableWords()

    def __init__(self, model: bytes, settings: Settings | None = None):
        self.settings = settings if settings is not None else Settings()
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._pieces: list[str] = [self._processor.id_to_piece(id) for id in range(len(self._processor))]
        self._ids = {piece: id for id, piece in enumerate(self._pieces)}
        names = {key: self._special_name(key) for key in ROLES.values()}
        self._names = {key: name for key, name in names.items() if name is not None}
        self._literals = {name: self._ids[name] for key, name in self._names.items() if name in self._ids}
        for stated, token in self.settings.added:
            self._add(token.content, stated)
        self.size = len(self._pieces)
        self.special = SpecialTokens(
            **{role: self._ids[self._names[key]] for role, key in ROLES.items() if key in self._names}
        )
        self.max_length = self.settings.max_length
        self._lowercase = self.settings.flag("do_lower_case", True)
        self._strip_accents = not self.settings.flag("keep_accents", False)
        first, separator = self.special.first, self.special.separator
        framed = first is not None and separator is not None
        self._before: list[int] = [first] if framed and first is not None else []
        self._after: list[int] = [separator] if framed and separator is not None else []

    @classmethod
    def open(cls, path: Path, settings: Settings) -> "SentencePieceTokenizer":
        try:
            return cls(read_regular(path, LARGEST_VOCABULARY, TokenizerError), settings)
        except (RuntimeError, ValueError, OverflowError, KeyError, IndexError) as error:
            raise TokenizerError(
                f"`sentencepiece` cannot read it ({error})",
                where=str(path),
                hint="the file is broken or cut short: download it again",
            ) from error

    def _special_name(self, key: str) -> str | None:
        stated = self.settings.names.get(key)
        if stated is not None:
            return stated
        return next((name for name in CONVENTIONAL[key] if name in self._ids), None)

    def _add(self, token: str, stated: int | None) -> None:
        if token not in self._ids:
            self._ids[token] = len(self._pieces)
            self._pieces.append(token)
        self._literals[token] = self._ids[token]
        if stated is not None and self._ids[token] != stated:
            raise TokenizerError(
                f"the added token {token!r} should have the id {stated} but gets {self._ids[token]}",
                where=self.settings.where or None,
                hint="the model and the list of added tokens come from different tokenizers",
            )

    @cached_property
    def digest(self) -> str:
        rest = [self._lowercase, self._strip_accents, sorted(self._literals.items()), self._before, self._after]
        rest.append(self.settings.truncation_side)
        return hashlib.sha256(self._model + json.dumps(rest, ensure_ascii=True).encode()).hexdigest()

    @cached_property
    def _literal(self) -> re.Pattern[str]:
        longest = sorted(self._literals, key=len, reverse=True)
        return re.compile("(" + "|".join(map(re.escape, longest)) + ")") if longest else re.compile(r"(?!)")

    @cached_property
    def _apart(self) -> dict[int, list[int]]:
        """Pieces that end in a digit and a comma, with the ids that stand for them: the number, then the comma."""
        comma = self._ids.get(",")
        table: dict[int, list[int]] = {}
        for id, piece in enumerate(self._pieces[: len(self._processor)]):
            if comma is None or len(piece) < 2 or piece[-1] != "," or not piece[-2].isdigit():
                continue
            parts: list[str] = self._processor.encode(piece[:-1].replace(SPACE, ""), out_type=str)
            if not piece.startswith(SPACE) and parts[0].startswith(SPACE):
                parts = parts[1:] if parts[0] == SPACE else [parts[0][1:], *parts[1:]]
            unknown = self._processor.unk_id()
            table[id] = [*(self._ids.get(part, unknown) for part in parts), comma]
        return table

    def _split(self, text: str) -> list[Piece]:
        """The pieces of one text with the characters they cover, special tokens written out in it included."""
        pieces: list[Piece] = []
        start = 0
        for index, part in enumerate(self._literal.split(text)):
            if index % 2:
                pieces.append((self._literals[part], start, start + len(part), True))
            elif part:
                pieces.extend(
                    (id, begin + start, end + start, first) for id, begin, end, first in self._split_plain(part)
                )
            start += len(part)
        return pieces

    def _split_plain(self, text: str) -> list[Piece]:
        plain = prepare(text, self._lowercase, self._strip_accents)
        found = self._processor.encode(plain.text, return_type="offset_mapping")
        pieces: list[Piece] = []
        for id, piece, (begin, end) in zip(found["ids"], found["pieces"], found["offsets"], strict=True):
            begin, end = without_space(plain, begin, end)
            starts_word = piece.startswith(SPACE) or not pieces
            replacement = self._apart.get(id)
            if replacement is None:
                pieces.append((id, *plain.original(begin, end), starts_word))
                continue
            for part in replacement:
                length = len(self._pieces[part].removeprefix(SPACE))
                last = min(begin + length, end)
                pieces.append((part, *plain.original(begin, last), starts_word))
                begin, starts_word = last, False
        return pieces

    def encode(self, text: str, pair: str | None = None, max_length: int | None = None) -> Tokens:
        texts = [text] if pair is None else [text, pair]
        check_texts(texts)
        parts = []
        for one in texts:
            pieces = self._split(one)
            parts.append((pieces, np.cumsum([first for *_, first in pieces], dtype=np.int64) - 1))
        num_first_words = int(parts[0][1].max(initial=-1)) + 1
        return self._frame(parts, num_first_words, max_length)

    def encode_words(
        self, words: Sequence[str], pair: Sequence[str] | None = None, max_length: int | None = None
    ) -> Tokens:
        parts = []
        for given in (words,) if pair is None else (words, pair):
            if isinstance(given, str):
                raise TokenizerError("encode_words was given one string", hint="give a list of words, or use encode")
            check_texts(given, "word")
            split = [self._split(word) for word in given]
            numbers = np.repeat(np.arange(len(split)), [len(pieces) for pieces in split])
            parts.append((list(itertools.chain.from_iterable(split)), numbers.astype(np.int64)))
        return self._frame(parts, len(words), max_length)

    def _frame(
        self, parts: list[tuple[list[Piece], np.ndarray]], num_first_words: int, max_length: int | None
    ) -> Tokens:
        has_pair = len(parts) == 2
        sizes = [len(pieces) for pieces, _ in parts]
        kept = sizes
        if max_length is not None:
            room = room_for_text(max_length, len(self._before) + len(self._after) * len(parts))
            kept = list(longest_first(sizes[0], sizes[1], room)) if has_pair else [min(sizes[0], room)]
        left = self.settings.truncation_side == "left"
        columns: list[np.ndarray] = []  # each [n, 6]: id, begin, end, word, segment, special
        second_start = None
        for segment, ((pieces, words), length) in enumerate(zip(parts, kept, strict=True)):
            cut = slice(len(pieces) - length, None) if left else slice(length)
            before, after = self._before if segment == 0 else [], self._after
            if segment == 1:
                second_start = sum(map(len, columns))
                words = words + num_first_words
            columns.append(np.array([[id, 0, 0, -1, segment, 1] for id in before], dtype=np.int64).reshape(-1, 6))
            table = np.zeros((length, 6), dtype=np.int64)
            table[:, :3] = np.array([piece[:3] for piece in pieces[cut]], dtype=np.int64).reshape(-1, 3)
            table[:, 3] = words[cut]
            table[:, 4] = segment
            columns.append(table)
            columns.append(np.array([[id, 0, 0, -1, segment, 1] for id in after], dtype=np.int64).reshape(-1, 6))
        whole = np.concatenate(columns)
        return Tokens(
            ids=whole[:, 0].copy(),
            offsets=whole[:, 1:3].copy(),
            words=whole[:, 3].copy(),
            segments=whole[:, 4].copy(),
            special=whole[:, 5].astype(bool),
            num_truncated=sum(sizes) - sum(kept),
            second_start=second_start,
        )

    def encode_ids(self, texts: Sequence[str], max_length: int | None = None) -> FlatIds:
        if max_length is not None:
            room_for_text(max_length, len(self._before) + len(self._after))
        rows = [[*self._before, *row, *self._after] for row in self._encode_all(texts, "encode_ids")]
        ids, lengths = flatten(rows)
        side = self.settings.truncation_side
        return truncate_flat(ids, lengths, max_length, len(self._before), len(self._after), side)

    def encode_pieces(self, texts: Sequence[str]) -> FlatIds:
        ids, lengths = flatten(self._encode_all(texts, "encode_pieces"))
        return FlatIds(ids, lengths, np.zeros(len(lengths), dtype=np.int64))

    @cached_property
    def continues(self) -> np.ndarray:
        apart = {*self._literals.values(), *self.special.ids()}
        return continuations(self._ids, self.size, self.kind, apart=apart)

    def _encode_all(self, texts: Sequence[str], caller: str) -> list[list[int]]:
        if isinstance(texts, str):
            raise TokenizerError(f"{caller} was given one string", hint="give a list of texts")
        if not are_strings(texts):
            check_texts(texts)
        rows: list[list[int]] = []
        for start in range(0, len(texts), CHUNK):
            rows.extend(self._encode_chunk(texts[start : start + CHUNK], start))
        return rows

    def _encode_chunk(self, texts: Sequence[str], start: int) -> list[list[int]]:
        plain = [prepare(text, self._lowercase, self._strip_accents, align=False).text for text in texts]
        try:
            rows: list[list[int]] = self._processor.encode(plain, out_type=int)
        except (TypeError, RuntimeError):
            check_texts(texts, start=start)
            raise
        for index, text in enumerate(texts):
            if self._literal.search(text):
                rows[index] = [piece[0] for piece in self._split(text)]
            elif not self._apart.keys().isdisjoint(rows[index]):
                rows[index] = [part for id in rows[index] for part in self._apart.get(id, (id,))]
        return rows

    def decode(self, ids: Sequence[int] | np.ndarray, skip_special: bool = True) -> str:
        numbers = np.asarray(ids, dtype=np.int64).reshape(-1).tolist()
        special = set(self._literals.values())
        parts: list[str] = []
        for is_special, group in itertools.groupby(numbers, key=special.__contains__):
            run = list(group)
            for id in run:
                self.token_of(id)
            if not is_special:
                parts.append(self._processor.decode(run))
            elif not skip_special:
                parts.extend(self._pieces[id] for id in run)
        return " ".join(part for part in parts if part)

    def id_of(self, token: str) -> int | None:
        return self._ids.get(token)

    def token_of(self, id: int) -> str:
        if not 0 <= id < self.size:
            raise no_such_id(int(id), self.size)
        return self._pieces[id]

    def save(self, folder: Path) -> None:
        """spiece.model and its settings; `transformers` opens them by the class that config.json implies."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "spiece.model").write_bytes(self._model)
        config = kept_settings(self.settings)
        config |= {"do_lower_case": self._lowercase, "keep_accents": not self._strip_accents}
        added = {
            str(id): {"content": name, "normalized": False, "special": True, "lstrip": False, "rstrip": False}
            for name, id in sorted(self._literals.items(), key=lambda item: item[1])
        }
        write_config(folder, config, self._names, self.settings, added)


def without_space(plain: PlainText, begin: int, end: int) -> tuple[int, int]:
    """A piece's characters without the white space that it begins with."""
    while begin < end and plain.text[begin] == " ":
        begin += 1
    return begin, end


def flatten(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """All ids one after another [T], and the length of each row [B]."""
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    return np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int64, count=int(lengths.sum())), lengths
