"""Pretrained: the user-facing model, with its tokenizer and its methods for texts. `load` opens one."""

import hashlib
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self, Unpack, get_args

import numpy as np
import torch
from torch import nn

from bertie.batch import Batch, Ragged
from bertie.devices import choose_device, device_of
from bertie.errors import CapabilityError, InputError, SpecError, TokenizerError
from bertie.models.embedding import BATCH_TOKENS, EncodeOptions, Encoding, Layers, embed_ids, warn_of_raw_vectors
from bertie.models.filling import LoadReport, kept_tensors
from bertie.models.folder.adapter_folder import base_of, is_adapter, open_adapter
from bertie.models.folder.folder import open_folder
from bertie.models.folder.folder_finding import find_folder, reading
from bertie.models.folder.saving import save_folder
from bertie.models.guess import Guess
from bertie.models.inputs import given_ids, listed_texts, warn_of_cuts, warn_of_unknown
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.models.sentence import SentenceSettings, learned_settings, read_sentence_settings
from bertie.models.summary import summarize, summary_html, summary_text
from bertie.nn.encoder import Encoded
from bertie.nn.pooling import Pooling, Projection, TokenPooling
from bertie.nn.products.choice import Precision
from bertie.objectives.masked_lm import MaskedLM
from bertie.reporting.progress import progress_line
from bertie.tasks.task import Task
from bertie.text import Tokenizer, Tokens, load_tokenizer

TextOrIds = str | Sequence[int] | np.ndarray
MAX_LENGTH = 128  # tokens of a row, for a model whose folder does not state how long its rows were in training


class Pretrained:
    """A model with its tokenizer, as `bertie.load` returns it.

    >>> import bertie
    >>> model = bertie.load("my-model")
    >>> model.encode(["a good film", "a bad film"]).shape == (2, model.recipe.encoder.width)
    True
    >>> len(model.fill("a good [MASK]", top=3))
    3
    """

    def __init__(
        self,
        model: Model,
        tokenizer: Tokenizer | None = None,
        settings: SentenceSettings | None = None,
        report: LoadReport | None = None,
        card: dict[str, Any] | None = None,
        source: str | None = None,
    ):
        self.model = model.eval()
        # The largest number of tokens that the model takes; None where there is no limit.
        self.limit = model.recipe.encoder.embeddings.max_length
        self.tokenizer = tokenizer
        self.report = report or LoadReport()
        self.card = card or {}
        self.source = source  # the folder or name that it was loaded from
        self.settings = settings or learned_settings(model, self.card.get("length"))
        if tokenizer is not None and tokenizer.size > self.recipe.vocab_size:
            raise TokenizerError(
                f"the tokenizer has {tokenizer.size:,} ids, the embedding only {self.recipe.vocab_size:,} rows",
                hint="they belong to different models",
            )

    def __repr__(self) -> str:
        return summary_text(summarize(self.model, self.tokenizer, self.report, self.source))

    def _repr_html_(self) -> str:
        return summary_html(summarize(self.model, self.tokenizer, self.report, self.source))

    @property
    def recipe(self) -> Recipe:
        return self.model.recipe

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return device_of(self.model)

    def to(self, device: str | torch.device) -> Self:
        """Moves the model to a device: `auto`, `cpu`, `cuda` or `mps`.

        >>> import bertie
        >>> bertie.load("my-model").to("cpu").device.type
        'cpu'
        """
        self.model.to(choose_device(device))
        return self

    @property
    def stated_limit(self) -> int | None:
        """The length at which the folder itself says to cut; at most `limit`."""
        stated = [self.settings.max_length if self.settings else None, self.tokenizer and self.tokenizer.max_length]
        limits = [limit for limit in stated if limit]
        return min([*limits, *([self.limit] if self.limit else [])]) if limits else None

    @property
    def makes_raw_vectors(self) -> bool:
        """Whether the model was not trained to compare vectors, as far as its folder shows."""
        return self.settings is None

    def task(self, name: str | None = None) -> Task:
        """Returns the task that the model was trained for, or the named one of several.

        >>> import bertie
        >>> bertie.load("my-classifier").task().name
        'classify'
        """
        tasks = {one.name: one for one in self.recipe.objectives if isinstance(one, Task)}
        if not tasks:
            what = "the model was not trained for a task"
            raise CapabilityError(what, where=self.source, hint="train it with `bertie finetune`")
        if name is None and len(tasks) > 1:
            what = "the model was trained for several tasks"
            raise SpecError(what, where=self.source, hint=f"choose one with `task`: {', '.join(tasks)}")
        if name is not None and name not in tasks:
            what = f"the model was not trained for the task {name!r}"
            raise SpecError(what, where=self.source, hint=f"it knows {', '.join(tasks)}")
        task = tasks[name] if name is not None else next(iter(tasks.values()))
        own = self.settings
        if task.vector_pooling and own and (own.prompt or (own.projection is not None and not task.has_dense)):
            what = "its vectors need a dense layer or a prompt that the task does not have"
            raise CapabilityError(what, where=self.source, hint="compare the vectors that `bertie embed` writes")
        return task

    def max_length_for(self, given: int | None = None) -> int:
        """Returns how many tokens a row of a task has: as given, else as in training; at most what the model takes."""
        length = given or int(self.card.get("length", MAX_LENGTH))
        return length if self.limit is None else min(length, self.limit)

    def tokenizer_for(self, max_length: int) -> Tokenizer:
        """Returns the tokenizer that makes rows of up to `max_length` tokens; an error where that cannot work."""
        if self.tokenizer is None:
            raise TokenizerError("the folder has no tokenizer", where=self.source, hint="put its tokenizer.json there")
        if self.limit is not None and max_length > self.limit:
            what = f"rows of {max_length:,} tokens are longer than the model takes"
            raise SpecError(what, hint=f"`max_length={self.limit}` is the most")
        return self.tokenizer

    @cached_property
    def digest(self) -> str:
        """sha256 over the recipe, the weights, the tokenizer and the sentence settings."""
        total = hashlib.sha256(self.recipe.to_json().encode())
        for name, tensor in kept_tensors(self.model).items():
            total.update(name.encode())
            total.update(tensor.detach().cpu().contiguous().numpy().data)
        total.update(f"{self.tokenizer.digest if self.tokenizer else None} {self.settings}".encode())
        return total.hexdigest()

    def encode(self, texts: str | Iterable[str], **options: Unpack[EncodeOptions]) -> np.ndarray:
        """Returns vectors [texts, width], or [width] for a single text. Options as in `encode_report`. Warns of texts
        that were cut, and once of vectors that are not meant to be compared.

        >>> import bertie
        >>> model = bertie.load("my-model")
        >>> model.encode("a good film", pooling="first", normalize=True).ndim
        1
        """
        if self.makes_raw_vectors:
            warn_of_raw_vectors()
        encoding = self.encode_report([texts] if isinstance(texts, str) else texts, **options)
        warn_of_cuts(encoding.num_truncated, len(encoding.vectors), encoding.num_cut)
        warn_of_unknown(encoding.unknown)
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
        precision: Precision = "float32",
        progress: bool | None = None,
    ) -> Encoding:
        """Returns vectors, and how many texts were cut, empty or corrected; see `EncodeOptions` for the options.

        Texts longer than `max_length`, or else than the limit that the folder states, are cut and counted. Without
        either, a text that is longer than the model takes is refused.

        >>> import bertie
        >>> bertie.load("my-model").encode_report(["a good film", ""]).num_empty
        1
        """
        tokenizer = self._need_tokenizer()
        how = self._pooling(pooling, layers, normalize).replace(size=size)
        projection = self.settings.projection if self.settings else None
        width = self._width(how, projection)
        cut_at = self._cut_at(max_length)
        if precision not in get_args(Precision):
            raise InputError(f"`precision={precision}`: choose float32 or bfloat16")
        if batch_tokens < 1:
            raise InputError(f"`batch_tokens={batch_tokens}`: a batch needs at least one token")
        texts = listed_texts(texts, self.settings.prompt if self.settings else "")
        flat = tokenizer.encode_ids(texts, max_length=cut_at)
        if cut_at is None and self.limit and len(flat.lengths) and flat.lengths.max() > self.limit:
            row = int(flat.lengths.argmax())
            raise self._too_long(f"text {row}", int(flat.lengths[row]))
        with progress_line("embedding", len(texts), "texts", progress) as advance:
            vectors = embed_ids(self.model.encoder, flat, how, width, batch_tokens, advance, projection, precision)
        bare, unknown = tokenizer.encode_ids([""]).lengths[0], tokenizer.special.count_unknown(flat.ids)
        return Encoding(
            vectors,
            num_tokens=int(flat.lengths.sum()),
            num_truncated=int((flat.num_truncated > 0).sum()),
            num_cut=int(flat.num_truncated.sum()),
            num_empty=int(((flat.lengths <= bare) & (flat.num_truncated == 0)).sum()),
            num_replaced=tokenizer.confusable.count(texts),
            num_unknown=unknown.num_unknown,
            num_text_tokens=unknown.num_tokens,
        )

    def fill(self, text: str, top: int = 5, max_length: int | None = None) -> list[Guess]:
        """Returns the `top` best tokens for each mask token of the text, best first, mask after mask.

        >>> [guess.gap for guess in bertie.load("my-model").fill("a [MASK] film with [MASK]", top=1)]
        [0, 1]
        """
        if top < 1:
            raise InputError(f"`top={top}`: at least one guess is needed")
        kind = next((one.name for one in self.recipe.objectives if isinstance(one, MaskedLM)), "masked-lm")
        head = self._head(kind, "fill gaps", "BertForMaskedLM or BertForPreTraining")
        tokenizer = self._need_tokenizer()
        mask = tokenizer.special.mask
        if mask is None:
            raise TokenizerError("the tokenizer has no mask token")
        tokens = self._tokens(text, max_length=max_length)
        gaps = np.flatnonzero(tokens.ids == mask)
        if not len(gaps):
            cut = f" in the first {len(tokens)} tokens" if tokens.num_truncated else ""
            raise InputError(f"the text has no {tokenizer.token_of(mask)}{cut}", hint="put one where a word is missing")
        with torch.inference_mode():
            states = self._run(tokens).states.values
            logits = head(states[torch.from_numpy(gaps).to(states.device)]).cpu()
            best = logits.softmax(-1).topk(min(top, self.recipe.vocab_size))
        return [
            Guess(self._token(id), probability, id, gap)
            for gap, (ids, probabilities) in enumerate(zip(best.indices.tolist(), best.values.tolist(), strict=True))
            for id, probability in zip(ids, probabilities, strict=True)
        ]

    def next_sentence(self, first: str, second: str, max_length: int | None = None) -> float:
        """Returns the probability that the second text follows the first.

        >>> import bertie
        >>> 0 <= bertie.load("my-model").next_sentence("I saw a film.", "It was good.") <= 1
        True
        """
        head = self._head("next-sentence", "compare sentences", "BertForNextSentencePrediction or BertForPreTraining")
        tokens = self._tokens(first, second, max_length)
        with torch.inference_mode():
            logits = head(self.model.encoder.pool(self._run(tokens).states)).cpu()
        return float(logits.softmax(-1)[0, 0])

    def hidden_states(self, text: TextOrIds, pair: str | None = None, max_length: int | None = None) -> np.ndarray:
        """Returns the states of every layer [layers + 1, tokens, width], embeddings first.

        >>> import bertie
        >>> bertie.load("my-model").hidden_states("a good film").ndim
        3
        """
        with torch.inference_mode():
            layers = self._run(self._tokens(text, pair, max_length), keep_layers=True).layers
        return torch.stack(layers).cpu().numpy()

    def attention(self, text: TextOrIds, pair: str | None = None, max_length: int | None = None) -> np.ndarray:
        """Returns the attention weights [layers, heads, tokens, tokens] from each token to every other.

        >>> import bertie
        >>> weights = bertie.load("my-model").attention("a good film")
        >>> bool(abs(weights.sum(-1) - 1).max() < 1e-5)
        True
        """
        with torch.inference_mode():
            weights = self._run(self._tokens(text, pair, max_length), keep_attention=True).attention
        return torch.cat(weights).cpu().numpy()

    def save(self, folder: str | Path) -> list[str]:
        """Writes a model folder that Hugging Face opens. Returns, and warns of, what it cannot express.

        >>> import bertie
        >>> bertie.load("my-model").save("copy-of-my-model")
        []
        """
        notes = save_folder(folder, self.model, self.tokenizer, self.settings, self.card)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return notes

    def _pooling(self, tokens: TokenPooling | None, layers: Layers | None, normalize: bool | None) -> Pooling:
        own = self.settings.pooling if self.settings else Pooling()
        chosen = {"tokens": tokens, "layers": layers, "normalize": normalize}
        return own.replace(**{name: value for name, value in chosen.items() if value is not None})

    def _width(self, how: Pooling, projection: Projection | None) -> int:
        """The width of the vectors that are returned."""
        own = self.recipe.encoder
        width = how.width(own.width) if how.needs_layers else own.output_width
        if projection is not None:
            size, wanted = projection.weight.shape
            if width != wanted:
                what = f"the folder's dense layer takes vectors of {wanted:,}, those of {how.layers} have {width:,}"
                raise InputError(what, hint="do not give `layers`")
            width = size
        if how.size is not None and how.size > width:
            raise SpecError(f"`size={how.size}`: the vectors have {width:,} numbers", hint="give a smaller `size`")
        return how.size or width

    def _cut_at(self, max_length: int | None) -> int | None:
        if max_length is None:
            return self.stated_limit
        if not isinstance(max_length, int) or max_length < 1 or (self.limit and max_length > self.limit):
            raise InputError(f"`max_length={max_length}`: the model takes 1 to {self.limit or 'any number of'} tokens")
        return max_length

    def _tokens(self, text: TextOrIds, pair: str | None = None, max_length: int | None = None) -> Tokens:
        if isinstance(text, str):
            tokenizer = self._need_tokenizer()
            tokens = tokenizer.encode(text, pair, None if max_length is None else self._cut_at(max_length))
            warn_of_cuts(int(tokens.num_truncated > 0), 1, tokens.num_truncated, stacklevel=4)
            warn_of_unknown(tokenizer.special.count_unknown(tokens.ids), stacklevel=4)
        elif pair is not None or max_length is not None:
            raise InputError("ids are used as they are", hint="with ids, do not give a second text or `max_length`")
        else:
            tokens = given_ids(text, self.recipe.vocab_size)
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
        # Segments are always given: scores may need them where the embeddings do not.
        return self.model.encoder(Batch(fields).to(self.device), keep_layers=keep_layers, keep_attention=keep_attention)

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
            hint=f"give `max_length={self.limit}` to cut it, or split it",
        )


def load(source: str | Path, recipe_type: type[Recipe] = Recipe, *, device: str | torch.device = "cpu") -> Pretrained:
    """Opens a model folder, a run folder, an adapter folder of `peft`, or a name on the Hugging Face hub.

    `recipe_type` is for models with parts of your own: a Recipe whose fields have your types. `device` is where the
    model computes.

    >>> import bertie
    >>> model = bertie.load("my-model")
    >>> model.report.clean
    True
    """
    chosen, folder = choose_device(device), find_folder(source)
    with reading(folder):
        if is_adapter(folder):
            opened, base = open_adapter(folder, recipe_type), base_of(folder)
        else:
            opened, base = open_folder(folder, recipe_type), folder
        tokenizer = load_tokenizer(folder) or load_tokenizer(base)
        # The recipe of bertie's own adapters states how vectors are made; for others, the base does.
        settings = None if base != folder and opened.card else read_sentence_settings(base)
    return Pretrained(opened.model, tokenizer, settings, opened.report, opened.card, str(source)).to(chosen)
