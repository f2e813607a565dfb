"""Turns pieces and options into a tokenizer. The same function without pieces gives the steps by which words are
counted, so that a vocabulary is trained on exactly the words that its tokenizer will see."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from bertie.text.tokenizers.pipeline import PipelineTokenizer
from bertie.text.tokenizers.settings import Settings
from bertie.text.tokenizers.vocabulary import (
    byte_bpe_tokenizer,
    characters_tokenizer,
    finish,
    wordpiece_tokenizer,
    words_tokenizer,
)
from bertie.text.vocab.vocab_options import VocabOptions

SPACE = "▁"


@dataclass(frozen=True)
class Trained:
    """What training found, special tokens first; a piece's id is its place."""

    pieces: Sequence[str]
    merges: Sequence[tuple[str, str]] = ()  # byte-level BPE
    scores: Sequence[float] = ()  # Unigram: log-probabilities


def build_tokenizer(options: VocabOptions, trained: Trained) -> PipelineTokenizer:
    added = tuple((None, AddedToken(name, special=True, normalized=False)) for name in options.special)
    settings = Settings(added=added)
    if options.kind == "wordpiece":
        return wordpiece_tokenizer(
            trained.pieces,
            lowercase=options.lowers,
            strip_accents=options.strips_accents,
            split_ideographs=options.splits_ideographs,
            settings=settings,
        )
    if options.kind == "byte-bpe":
        numbered = {piece: id for id, piece in enumerate(trained.pieces)}
        tokenizer = byte_bpe_tokenizer(numbered, trained.merges, settings=settings)
    elif options.kind == "unigram":
        tokenizer = _unigram_tokenizer(trained, settings)
    elif options.kind == "words":
        tokenizer = words_tokenizer(trained.pieces, settings=settings)
    else:
        tokenizer = characters_tokenizer(trained.pieces, settings=settings)
    _set_text_steps(tokenizer.pipeline, options)
    return tokenizer


def build_splitter(options: VocabOptions) -> Tokenizer:
    """A pipeline whose normalizer and pre-tokenizer are those of the tokenizer to come."""
    pieces = options.all_special
    return build_tokenizer(options, Trained(pieces, scores=[0.0] * len(pieces))).pipeline


def _unigram_tokenizer(trained: Trained, settings: Settings) -> PipelineTokenizer:
    scored = list(zip(trained.pieces, trained.scores, strict=True))
    pipeline = Tokenizer(models.Unigram(scored, unk_id=trained.pieces.index("[UNK]")))
    marked = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    # Text without spaces would have words of a whole paragraph; between punctuation marks they are short.
    pipeline.pre_tokenizer = pre_tokenizers.Sequence([marked, pre_tokenizers.Punctuation(behavior="isolated")])
    pipeline.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always")
    return finish(pipeline, settings, pair_type=1)


def _set_text_steps(pipeline: Tokenizer, options: VocabOptions) -> None:
    """Case, accents and ideographs for the kinds whose builder leaves them alone."""
    steps: list[normalizers.Normalizer] = []
    if options.kind == "unigram":
        steps += [normalizers.NFKC()]
    if options.lowers:
        steps += [normalizers.Lowercase()]
    if options.strips_accents:
        steps += [normalizers.NFD(), normalizers.StripAccents(), normalizers.NFC()]
    if options.kind == "unigram":
        # White space of any sort and length is one space, so that no piece spans two words.
        steps += [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    if steps:
        pipeline.normalizer = normalizers.Sequence(steps)
    if options.splits_ideographs:
        split = pre_tokenizers.Split(Regex(r"\p{Han}"), behavior="isolated")
        pipeline.pre_tokenizer = pre_tokenizers.Sequence(_in_order(pipeline.pre_tokenizer, split, options.kind))


def _in_order(
    own: pre_tokenizers.PreTokenizer, split: pre_tokenizers.PreTokenizer, kind: str
) -> list[pre_tokenizers.PreTokenizer]:
    # Byte-level pieces are no longer ideographs, so the split comes before them.
    return [split, own] if kind == "byte-bpe" else [own, split]
