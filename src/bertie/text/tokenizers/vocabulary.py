"""Turns a list of pieces into a tokenizer: WordPiece, byte-level BPE, characters, words.

The list is the whole vocabulary: a piece's id is its place. Special tokens are found in it by their usual names, and a
text is put between the first token and the separator where the list has both.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bertie.errors import TokenizerError
from bertie.text.tokenizers.pipeline import CONVENTIONAL, PipelineTokenizer
from bertie.text.tokenizers.settings import ROLES, Settings

MAX_CHARACTERS_PER_WORD = 100  # longer words become one unknown token
# One word is a run of letters, digits and marks; white space, punctuation, symbols and ideographs stand alone.
SINGLE_CHARACTERS = r"\s|\p{P}|\p{S}|\p{Han}"


def wordpiece_tokenizer(
    pieces: Sequence[str],
    *,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    split_ideographs: bool = True,
    settings: Settings | None = None,
) -> PipelineTokenizer:
    """Greedy longest match with "##" for continuations. strip_accents None means: as lowercase."""
    settings = settings or Settings()
    vocabulary = number(pieces, settings)
    unknown = special_names(vocabulary, settings)["unk_token"]
    model = models.WordPiece(vocabulary, unk_token=unknown, max_input_chars_per_word=MAX_CHARACTERS_PER_WORD)
    pipeline = Tokenizer(model)
    pipeline.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=split_ideographs, strip_accents=strip_accents, lowercase=lowercase
    )
    pipeline.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pipeline.decoder = decoders.WordPiece(prefix="##")
    return finish(pipeline, settings, pair_type=1)


def words_tokenizer(
    words: Sequence[str],
    *,
    split: Literal["punctuation", "whitespace"] = "punctuation",
    lowercase: bool = False,
    settings: Settings | None = None,
) -> PipelineTokenizer:
    """Whole words: split at white space, and by default around each punctuation mark too."""
    settings = settings or Settings()
    vocabulary = number(words, settings)
    pipeline = Tokenizer(models.WordLevel(vocabulary, unk_token=special_names(vocabulary, settings)["unk_token"]))
    if lowercase:
        pipeline.normalizer = normalizers.Lowercase()
    at_space = pre_tokenizers.WhitespaceSplit()
    pipeline.pre_tokenizer = (
        at_space
        if split == "whitespace"
        else pre_tokenizers.Sequence([at_space, pre_tokenizers.Punctuation(behavior="isolated")])
    )
    return finish(pipeline, settings, pair_type=1)


def characters_tokenizer(
    characters: Sequence[str], *, lowercase: bool = False, settings: Settings | None = None
) -> PipelineTokenizer:
    """One piece a character, white space too. `words` of its Tokens still show which characters form a word."""
    settings = settings or Settings()
    vocabulary = number(characters, settings)
    special = set(special_names(vocabulary, settings).values())
    for piece in vocabulary:
        if len(piece) != 1 and piece not in special and not is_named(piece, settings):
            raise TokenizerError(
                f"{piece!r} is not one character", where=settings.where or None, hint="list single characters only"
            )
    # A BPE without merges leaves the characters of each word as they are, unknown ones one by one.
    model = models.BPE(
        vocab=vocabulary, merges=[], unk_token=special_names(vocabulary, settings)["unk_token"], fuse_unk=False
    )
    pipeline = Tokenizer(model)
    if lowercase:
        pipeline.normalizer = normalizers.Lowercase()
    pipeline.pre_tokenizer = pre_tokenizers.Split(Regex(SINGLE_CHARACTERS), behavior="isolated")
    pipeline.decoder = decoders.Fuse()
    return finish(pipeline, settings, pair_type=1)


def byte_bpe_tokenizer(
    vocabulary: Mapping[str, int], merges: Iterable[tuple[str, str]], *, settings: Settings | None = None
) -> PipelineTokenizer:
    """Byte-level BPE. Without "<s>" and "</s>" in the vocabulary texts get no special tokens."""
    settings = settings or Settings()
    model = models.BPE(
        vocab=dict(vocabulary),
        merges=list(merges),
        continuing_subword_prefix="",
        end_of_word_suffix="",
        fuse_unk=False,
    )
    pipeline = Tokenizer(model)
    add_space = settings.flag("add_prefix_space", False)
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_space)
    pipeline.decoder = decoders.ByteLevel()
    if "<|endoftext|>" in vocabulary:
        pipeline.add_special_tokens([AddedToken("<|endoftext|>", special=True, normalized=False)])
    return finish(pipeline, settings, pair_type=0, trim_offsets=settings.flag("trim_offsets", True))


def finish(
    pipeline: Tokenizer, settings: Settings, pair_type: int, trim_offsets: bool | None = None
) -> PipelineTokenizer:
    """Mark the special tokens, add those that the settings state, and frame each text with its special tokens.

    `trim_offsets` is for byte-level pieces, whose offsets may hold the space before them, and whose pairs have two
    separators between the texts.
    """
    byte_level = trim_offsets is not None
    names = special_names(pipeline.get_vocab(with_added_tokens=True), settings, required=not byte_level)
    add_stated(pipeline, settings)
    marked = {token.content for token in pipeline.get_added_tokens_decoder().values()}
    for key, name in names.items():
        if name in marked:
            continue
        # A byte-level mask stands for a piece with its space, so it takes the space before it along.
        takes_space = byte_level and key == "mask_token"
        pipeline.add_special_tokens([AddedToken(name, special=True, normalized=False, lstrip=takes_space)])
    set_frame(pipeline, names, pair_type, trim_offsets)
    return PipelineTokenizer(pipeline, settings)


def set_frame(
    pipeline: Tokenizer, names: Mapping[str, str], pair_type: int = 1, trim_offsets: bool | None = None
) -> None:
    """Put the first token and separators around each text; nothing where the tokenizer has not both."""
    first, separator = names.get("cls_token"), names.get("sep_token")
    if first is None or separator is None:
        return
    byte_level = trim_offsets is not None
    between = f"{separator}:0 {separator}:0" if byte_level else f"{separator}:0"
    template = processors.TemplateProcessing(
        single=f"{first}:0 $A:0 {separator}:0",
        pair=f"{first}:0 $A:0 {between} $B:{pair_type} {separator}:{pair_type}",
        special_tokens=[(name, pipeline.token_to_id(name)) for name in (first, separator)],
    )
    pipeline.post_processor = (
        processors.Sequence([processors.ByteLevel(trim_offsets=trim_offsets), template]) if byte_level else template
    )


def add_stated(pipeline: Tokenizer, settings: Settings) -> None:
    """Add the tokens that the folder's settings state and the vocabulary does not mark yet."""
    known = [token.content for token in pipeline.get_added_tokens_decoder().values()]
    for stated, token in settings.added:
        if token.content in known:
            continue
        before = pipeline.token_to_id(token.content)
        (pipeline.add_special_tokens if token.special else pipeline.add_tokens)([token])
        given = pipeline.token_to_id(token.content)
        if stated is not None and given != stated:
            raise TokenizerError(
                f"the added token {token.content!r} should have the id {stated} but "
                + (f"the vocabulary has it as {before}" if before is not None else f"the next free id is {given}"),
                where=settings.where or None,
                hint="the vocabulary and the list of added tokens come from different tokenizers",
            )


def special_names(vocabulary: Mapping[str, int], settings: Settings, required: bool = True) -> dict[str, str]:
    """The special tokens that exist, by role: stated by the settings, or under a usual name in the vocabulary."""
    names: dict[str, str] = {}
    for key in ROLES.values():
        stated = settings.names.get(key)
        if stated is not None:
            names[key] = stated
            continue
        usual = next((name for name in CONVENTIONAL[key] if name in vocabulary), None)
        if usual is not None:
            names[key] = usual
    unknown = names.get("unk_token")
    if required and (unknown is None or unknown not in vocabulary):
        raise TokenizerError(
            f"the vocabulary has no unknown token {unknown or '[UNK]'}",
            where=settings.where or None,
            hint="add a line with it, or name the token as `unk_token` in tokenizer_config.json",
        )
    return names


def is_named(piece: str, settings: Settings) -> bool:
    return any(piece == token.content for _, token in settings.added)


def number(pieces: Sequence[str], settings: Settings) -> dict[str, int]:
    """Each piece with its id; a piece that is listed twice would leave an id that no text ever gets."""
    vocabulary: dict[str, int] = {}
    for index, piece in enumerate(pieces):
        if piece in vocabulary and piece:
            raise TokenizerError(
                f"the piece {piece!r} is listed twice, on lines {vocabulary[piece] + 1} and {index + 1}",
                where=settings.where or None,
                hint="remove one, or replace it by an unused name so that the later ids stay the same",
            )
        vocabulary[piece] = index
    return vocabulary
