"""What `bertie.load` gives: a model with its tokenizer, and the verbs people use. Texts enter, plain numbers leave."""

import hashlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from bertie.batch import Batch, Ragged
from bertie.errors import CapabilityError, FolderError, InputError, SpecError, TokenizerError
from bertie.models.adapter_folder import base_of, is_adapter, open_adapter
from bertie.models.embedding import BATCH_TOKENS, Encoding, embed_ids, warn_of_raw_vectors
from bertie.models.filling import LoadReport, kept_tensors
from bertie.models.folder import open_folder, take_place, write_folder
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.models.sentence import (
    SentenceSettings,
    learned_settings,
    read_sentence_settings,
    write_sentence_settings,
)
from bertie.models.source import find_folder
from bertie.nn.encoder import Encoded
from bertie.nn.pooling import Pooling, Projection, TokenPooling
from bertie.objectives.masked_lm import MaskedLM
from bertie.progress import progress_line
from bertie.text import Tokenizer, Tokens, load_tokenizer
from bertie.text.pipeline import table_of

PART = ".new-"  # begins the name of a folder that is being written inside the model's

TextOrIds = str | Sequence[int] | np.ndarray
Layers = Literal["last", "sum4", "concat4"] | int


class TruncationWarning(UserWarning):
    """Texts were longer than the limit and were cut."""


@dataclass(frozen=True)
class Guess:
    """One candidate for a gap."""

    token: str
    probability: float
    id: int
    gap: int  # which gap of the text, from 0


class Pretrained:
    def __init__(
        self,
        model: Model,
        tokenizer: Tokenizer | None = None,
        settings: SentenceSettings | None = None,
        report: LoadReport | None = None,
        card: dict[str, Any] | None = None,
    ):
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.report = report or LoadReport()
        self.card = card or {}
        self.settings = settings or learned_settings(model, self.card.get("length"))
        if tokenizer is not None and tokenizer.size > self.recipe.vocab_size:
            raise TokenizerError(
                f"the tokenizer has {tokenizer.size:,} ids, the embedding only {self.recipe.vocab_size:,} rows",
                hint="they belong to different models",
            )

    @property
    def recipe(self) -> Recipe:
        return self.model.recipe

    @property
    def limit(self) -> int | None:
        """The longest row that the model can take."""
        fields = self.recipe.encoder.embeddings.fields
        if "positions" not in fields:
            return None
        table = self.recipe.encoder.embeddings.table("positions")
        return table.size - table.offset

    @property
    def stated_limit(self) -> int | None:
        """Where the folder itself asks to cut; never beyond what the model can take."""
        stated = [self.settings.max_length if self.settings else None, self.tokenizer and self.tokenizer.max_length]
        limits = [limit for limit in stated if limit]
        return min([*limits, *([self.limit] if self.limit else [])]) if limits else None

    @property
    def makes_raw_vectors(self) -> bool:
        """Whether nobody made it for comparing its vectors, as far as its folder tells."""
        return self.settings is None

    @cached_property
    def digest(self) -> str:
        """sha256 over the recipe, the weights, the tokenizer and the sentence settings."""
        total = hashlib.sha256(self.recipe.to_json().encode())
        for name, tensor in kept_tensors(self.model).items():
            total.update(name.encode())
            total.update(tensor.detach().contiguous().numpy().data)
        total.update(f"{self.tokenizer.digest if self.tokenizer else None} {self.settings}".encode())
        return total.hexdigest()

    def encode(
        self,
        texts: str | Iterable[str],
        *,
        pooling: TokenPooling | None = None,
        layers: Layers | None = None,
        normalize: bool | None = None,
        size: int | None = None,
        max_length: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
        progress: bool | None = None,
    ) -> np.ndarray:
        """Vectors [texts, width], or [width] of a single text; warns of what was cut, and once of vectors that are not
        made to be compared. Options as in `encode_report`."""
        if self.makes_raw_vectors:
            warn_of_raw_vectors()
        encoding = self.encode_report(
            [texts] if isinstance(texts, str) else texts,
            pooling=pooling,
            layers=layers,
            normalize=normalize,
            size=size,
            max_length=max_length,
            batch_tokens=batch_tokens,
            progress=progress,
        )
        _warn_of_cuts(encoding.num_truncated, len(encoding.vectors), encoding.num_cut)
        return encoding.vectors[0] if isinstance(texts, str) else encoding.vectors

    def encode_report(
        self,
        texts: Iterable[str],
        *,
        pooling: TokenPooling | None = None,
        layers: Layers | None = None,
        normalize: bool | None = None,
        size: int | None = None,
        max_length: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
        progress: bool | None = None,
    ) -> Encoding:
        """Vectors, and what was cut or put right. What is not chosen is as the folder says, else the mean over the last
        layer. Of each vector the first `size` numbers are kept, and normalised where all would be.

        Texts longer than `max_length`, or else than the limit that the folder states, are cut and counted; where
        neither says anything, a text longer than the model can take is refused.
        """
        tokenizer = self._need_tokenizer()
        how = self._pooling(pooling, layers, normalize).replace(size=size)
        projection = self.settings.projection if self.settings else None
        width = self._width(how, projection)
        cut_at = self._cut_at(max_length)
        if batch_tokens < 1:
            raise InputError(f"batch_tokens is {batch_tokens}; a batch needs at least one")
        texts = _listed(texts, self.settings.prompt if self.settings else "")
        flat = tokenizer.encode_ids(texts, max_length=cut_at)
        if cut_at is None and self.limit and len(flat.lengths) and flat.lengths.max() > self.limit:
            row = int(flat.lengths.argmax())
            raise self._too_long(f"text {row}", int(flat.lengths[row]))
        with progress_line("embedding", len(texts), "texts", progress) as advance:
            vectors = embed_ids(self.model.encoder, flat, how, width, batch_tokens, advance, projection)
        bare = tokenizer.encode_ids([""]).lengths[0]
        return Encoding(
            vectors,
            num_tokens=int(flat.lengths.sum()),
            num_truncated=int((flat.num_truncated > 0).sum()),
            num_cut=int(flat.num_truncated.sum()),
            num_empty=int(((flat.lengths <= bare) & (flat.num_truncated == 0)).sum()),
            num_replaced=table_of(tokenizer).count(texts),
        )

    def fill(self, text: str, top: int = 5, max_length: int | None = None) -> list[Guess]:
        """The best words for each gap, best first, gap after gap."""
        if top < 1:
            raise InputError(f"top is {top}; at least one guess must be asked for")
        kind = next((one.kind for one in self.recipe.objectives if isinstance(one, MaskedLM)), "masked-lm")
        head = self._head(kind, "fill gaps", "BertForMaskedLM or BertForPreTraining")
        tokenizer = self._need_tokenizer()
        mask = tokenizer.special.mask
        if mask is None:
            raise TokenizerError("the tokenizer has no mask token to mark a gap with")
        tokens = self._tokens(text, max_length=max_length)
        gaps = np.flatnonzero(tokens.ids == mask)
        if not len(gaps):
            cut = f" in the first {len(tokens)} tokens" if tokens.num_truncated else ""
            raise InputError(f"the text has no {tokenizer.token_of(mask)}{cut}", hint="put one where a word is missing")
        with torch.inference_mode():
            states = self._run(tokens).states.values
            best = head(states[torch.from_numpy(gaps)]).softmax(-1).topk(min(top, self.recipe.vocab_size))
        return [
            Guess(self._token(id), probability, id, gap)
            for gap, (ids, probabilities) in enumerate(zip(best.indices.tolist(), best.values.tolist(), strict=True))
            for id, probability in zip(ids, probabilities, strict=True)
        ]

    def next_sentence(self, first: str, second: str, max_length: int | None = None) -> float:
        """The probability that the second text follows the first."""
        head = self._head("next-sentence", "judge neighbours", "BertForNextSentencePrediction or BertForPreTraining")
        tokens = self._tokens(first, second, max_length)
        with torch.inference_mode():
            logits = head(self.model.encoder.pool(self._run(tokens).states))
        return float(logits.softmax(-1)[0, 0])

    def hidden_states(self, text: TextOrIds, pair: str | None = None, max_length: int | None = None) -> np.ndarray:
        """[layers + 1, tokens, width], embeddings first."""
        with torch.inference_mode():
            layers = self._run(self._tokens(text, pair, max_length), keep_layers=True).layers
        return torch.stack(layers).numpy()

    def attention(self, text: TextOrIds, pair: str | None = None, max_length: int | None = None) -> np.ndarray:
        """[layers, heads, tokens, tokens]: how much each token looks at each other one."""
        with torch.inference_mode():
            weights = self._run(self._tokens(text, pair, max_length), keep_attention=True).attention
        return torch.cat(weights).numpy()

    def save(self, folder: str | Path) -> list[str]:
        """Write a model folder that Hugging Face opens. Returns, and warns of, what it could not express."""
        if not str(folder):
            raise FolderError("no folder was named")
        folder = Path(folder).expanduser()
        if folder.exists() and not folder.is_dir():
            raise FolderError("is a file, not a folder", where=str(folder))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FolderError(f"cannot be made ({error.strerror})", where=str(folder)) from None
        card = {**self.card, "tokenizer_sha256": self.tokenizer.digest if self.tokenizer else None}
        with TemporaryDirectory(dir=folder, prefix=PART) as made:
            notes = [write_folder(Path(made), self.model, card)]
            if self.tokenizer is not None:
                self.tokenizer.save(Path(made))
                for inner in Path(made).glob("*/config.json"):  # a model within the model opens alone, too
                    self.tokenizer.save(inner.parent)
                notes.append(self._shifted_positions())
            if self.settings is not None:
                notes.append(write_sentence_settings(Path(made), self.settings, self.recipe.encoder.output_width))
            take_place(Path(made), folder)
        told = [note for note in notes if note]
        for note in told:
            warnings.warn(note, stacklevel=2)
        return told

    def _shifted_positions(self) -> str:
        """Where others count positions from behind the padding's id, that id must be the tokenizer's own."""
        tables, padding = self.recipe.encoder.embeddings, self.tokenizer and self.tokenizer.special.pad
        offset = tables.table("positions").offset if "positions" in tables.fields else 0
        if not offset or padding is None or padding == offset - 1:
            return ""
        return (
            f"positions begin at {offset}, so transformers takes id {offset - 1} for padding, which is {padding} here: "
            "its outputs will differ where that token stands in a text"
        )

    def _pooling(self, tokens: TokenPooling | None, layers: Layers | None, normalize: bool | None) -> Pooling:
        own = self.settings.pooling if self.settings else Pooling()
        chosen = {"tokens": tokens, "layers": layers, "normalize": normalize}
        return own.replace(**{name: value for name, value in chosen.items() if value is not None})

    def _width(self, how: Pooling, projection: Projection | None) -> int:
        """Of the vectors that leave."""
        own = self.recipe.encoder
        width = how.width(own.width) if how.needs_layers else own.output_width
        if projection is not None:
            size, wanted = projection.weight.shape
            if width != wanted:
                what = f"the folder's dense layer takes vectors of {wanted:,}, those of {how.layers} have {width:,}"
                raise InputError(what, hint="leave out the choice of layers")
            width = size
        if how.size is not None and how.size > width:
            raise SpecError(f"size is {how.size}, the vectors have {width:,} numbers", hint="ask for fewer")
        return how.size or width

    def _cut_at(self, max_length: int | None) -> int | None:
        if max_length is None:
            return self.stated_limit
        if not isinstance(max_length, int) or max_length < 1 or (self.limit and max_length > self.limit):
            raise InputError(f"max_length is {max_length}, the model takes 1 to {self.limit or 'any number of'} tokens")
        return max_length

    def _tokens(self, text: TextOrIds, pair: str | None = None, max_length: int | None = None) -> Tokens:
        if isinstance(text, str):
            tokens = self._need_tokenizer().encode(text, pair, None if max_length is None else self._cut_at(max_length))
            _warn_of_cuts(int(tokens.num_truncated > 0), 1, tokens.num_truncated, stacklevel=4)
        elif pair is not None or max_length is not None:
            raise InputError("ids are taken as they are", hint="put a second text and any cut into the ids themselves")
        else:
            tokens = _given_ids(text, self.recipe.vocab_size)
        if self.limit and len(tokens) > self.limit:
            raise self._too_long("the text", len(tokens))
        return tokens

    def _run(self, tokens: Tokens, keep_layers: bool = False, keep_attention: bool = False) -> Encoded:
        if not len(tokens):
            raise InputError("there are no tokens")
        fields = {"tokens": Ragged.of([tokens.ids]), "segments": Ragged.of([tokens.segments])}
        embeddings = self.recipe.encoder.embeddings
        if "segments" in embeddings.fields and tokens.segments.max() >= (known := embeddings.table("segments").size):
            raise InputError(f"the model knows {known} segment(s), this pair of texts needs more")
        # Segments are told in any case: scores may ask for them where the embeddings do not.
        return self.model.encoder(Batch(fields), keep_layers=keep_layers, keep_attention=keep_attention)

    def _head(self, kind: str, verb: str, classes: str) -> nn.Module:
        if kind not in self.model.heads:
            raise CapabilityError(
                f"this folder has no {kind} head, so it cannot {verb}",
                hint=f"use a folder that was saved with one, such as {classes}",
            )
        return self.model.heads[kind]

    def _need_tokenizer(self) -> Tokenizer:
        if self.tokenizer is None:
            raise TokenizerError("the folder has no tokenizer", hint="give token ids, or put its tokenizer.json there")
        return self.tokenizer

    def _token(self, id: int) -> str:
        tokenizer = self._need_tokenizer()
        try:
            return tokenizer.token_of(id)
        except TokenizerError:  # the table may have more rows than the vocabulary, and the vocabulary may have holes
            return f"<{id}>"

    def _too_long(self, what: str, length: int) -> InputError:
        return InputError(
            f"{what} has {length:,} tokens, the model takes at most {self.limit}",
            hint=f"give max_length={self.limit} to cut it, or split it",
        )


def _given_ids(ids: Sequence[int] | np.ndarray, vocab_size: int) -> Tokens:
    try:
        array = np.asarray(ids)
    except ValueError:
        array = np.empty((0, 0))
    if array.ndim == 1 and not len(array):
        raise InputError("there are no tokens")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError("ids must be one row of whole numbers")
    array = array.astype(np.int64)
    if len(array) and (array.min() < 0 or array.max() >= vocab_size):
        wrong = int(array[(array < 0) | (array >= vocab_size)][0])
        raise InputError(f"id {wrong} is outside the vocabulary of {vocab_size:,}")
    blank = np.zeros_like(array)
    return Tokens(array, np.zeros((len(array), 2), np.int64), blank - 1, blank, np.zeros(len(array), bool))


def _listed(texts: Iterable[str], prompt: str) -> list[str]:
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise InputError(f"texts must be a list of texts, not {type(texts).__name__}")
    return [prompt + text for text in texts] if prompt else list(texts)


def _warn_of_cuts(num_texts: int, num_all: int, num_tokens: int, stacklevel: int = 3) -> None:
    if num_texts:
        told = f"{num_texts:,} of {num_all:,} texts were too long and were cut: {num_tokens:,} tokens are lost"
        warnings.warn(told, TruncationWarning, stacklevel=stacklevel)


def load(source: str | Path, recipe_type: type[Recipe] = Recipe) -> Pretrained:
    """Open a model folder, a run folder, an adapter folder of `peft`, or a name on the Hugging Face hub.

    `recipe_type` is for models made of parts of your own: a Recipe whose fields have your types.
    """
    folder = find_folder(source)
    if is_adapter(folder):
        opened, base = open_adapter(folder, recipe_type), base_of(folder)
    else:
        opened, base = open_folder(folder, recipe_type), folder
    tokenizer = load_tokenizer(folder) or load_tokenizer(base)
    # What was adapted by bertie says by its own recipe how vectors are made; others' adapters leave that to the base.
    settings = None if base != folder and opened.card else read_sentence_settings(base)
    return Pretrained(opened.model, tokenizer, settings, opened.report, opened.card)
