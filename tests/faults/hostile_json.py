"""Ways to ruin the JSON files of a model folder: `json_faults` yields a name and a function for each."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.faults.ruining import (
    CONFIG,
    LIMITS,
    POOLING,
    SETTINGS,
    TOKENIZER,
    become_folder,
    become_huge,
    become_pipe,
    edit,
    link,
    twice,
    write,
)

JSON_FILES = (CONFIG, TOKENIZER, SETTINGS, "special_tokens_map.json", "modules.json", POOLING, LIMITS)
OBJECTS = tuple(name for name in JSON_FILES if name != "modules.json")
OF_ANY_FILE: dict[str, Callable[[str, Path], object]] = {
    "empty": lambda name, folder: write(name, b"", folder),
    "cut short": lambda name, folder: write(name, b'{"a": [1, 2', folder),
    "a number": lambda name, folder: write(name, b"7", folder),
    "not UTF-8": lambda name, folder: write(name, b'{"\xff\xfe": 1}', folder),
    "nested a thousand times": lambda name, folder: write(name, b"[" * 500 + b"]" * 500, folder),
    "nested a million times": lambda name, folder: write(name, b'{"a":' * 10**6, folder),
    "a number of ten thousand digits": lambda name, folder: write(name, b'{"a": 1' + b"0" * 10**4 + b"}", folder),
    "a terabyte": become_huge,
    "an endless device": lambda name, folder: link(name, "/dev/zero", folder),
    "a folder": become_folder,
    "a pipe": become_pipe,
    "a link to itself": lambda name, folder: link(name, Path(name).name, folder),
    "a link to nowhere": lambda name, folder: link(name, "nowhere", folder),
}
SIZES = ("hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size", "num_attention_heads")
ODD_SIZES = {
    "10**19": 10**19,
    "10**9": 10**9,
    "10**7": 10**7,
    "10**4000": 10**4000,
    "-1": -1,
    "text": "32",
    "a list": [],
    "null": None,
    "true": True,
    "half": 1.5,
    "NaN": float("nan"),
}
ODD_NUMBERS = {
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
    "NaN": float("nan"),
    "zero": 0,
    "-1": -1,
    "text": "1e-12",
    "null": None,
    "true": True,
}


CONFIGS: dict[str, dict[str, Any]] = {
    "heads that do not divide the width": {"num_attention_heads": 3},
    "another architecture": {"model_type": "gpt2"},
    "an architecture that is a list": {"model_type": ["bert"]},
    "an architecture of other names": {"model_type": "xlnet"},
    "another activation": {"hidden_act": "exec"},
    "an activation that is an object": {"hidden_act": {}},
    "a decoder": {"is_decoder": True},
    "a rate above 1": {"hidden_dropout_prob": 7},
    "no layers": {"num_hidden_layers": 0},
    "more layers than there are": {"num_hidden_layers": 999},
    "fewer layers than there are, as text": {"num_hidden_layers": "1"},
    "huge positions": {"max_position_embeddings": 10**12},
    "huge segments": {"type_vocab_size": 10**12},
    "a modern model of no layers": {"model_type": "modernbert", "num_hidden_layers": 0},
    "a modern model of global layers every 0": {"model_type": "modernbert", "global_attn_every_n_layers": 0},
    "a modern model with text for angles": {"model_type": "modernbert", "rope_parameters": "fast"},
    "a shared model of 10**7 layers": {"model_type": "albert", "num_hidden_layers": 10**7},
    "a model with a width of an object": {"model_type": "xlm", "emb_dim": {}},
}
TOKEN_FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
TOKENIZERS: dict[str, dict[str, Any]] = {
    "an id of 2**32 - 2": {"model.vocab.the": 2**32 - 2},
    "an id of 10**19": {"model.vocab.the": 10**19},
    "a negative id": {"model.vocab.the": -1},
    "an id that is text": {"model.vocab.the": "5"},
    "an id that is null": {"model.vocab.the": None},
    "no pieces": {"model.vocab": {}},
    "pieces as a list": {"model.vocab": ["the"]},
    "pieces as a number": {"model.vocab": 3},
    "no model": {"model": None},
    "a model of an unknown type": {"model.type": "Magic"},
    "a model of another type": {"model.type": "BPE"},
    "a Unigram without pieces": {"model": {"type": "Unigram", "unk_id": 5, "vocab": []}},
    "a Unigram with infinite scores": {"model": {"type": "Unigram", "unk_id": 0, "vocab": [["a", float("inf")]]}},
    "a normalizer that is text": {"normalizer": "Lowercase"},
    "a normalizer that is a list": {"normalizer": [{"type": "Lowercase"}]},
    "steps that are numbers": {"normalizer": {"type": "Sequence", "normalizers": [1, 2]}},
    "steps that are an object": {"normalizer": {"type": "Sequence", "normalizers": {}}},
    "a map of characters of rubbish": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "//////8="}},
    "an empty map of characters": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": ""}},
    "a pre-tokenizer that is a number": {"pre_tokenizer": 5},
    "a decoder that is text": {"decoder": "x"},
    "a post-processor without its tokens": {
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[X]", "type_id": 0}}],
            "pair": [],
            "special_tokens": {},
        }
    },
    "added tokens as text": {"added_tokens": "[X]"},
    "an added token of a huge id": {"added_tokens": [{"id": 2**32 - 2, "content": "[X]", **TOKEN_FLAGS}]},
    "an unknown token that is no piece": {"model.unk_token": "[NEVER]"},
    "a truncation of text": {"truncation": "no"},
    "a version of numbers": {"version": 17},
}
SETTING_FAULTS: dict[str, dict[str, Any]] = {
    "added tokens as a list": {"added_tokens_decoder": [1, 2]},
    "added tokens as text": {"added_tokens_decoder": "all"},
    "added tokens as null": {"added_tokens_decoder": None},
    "an added token that is text": {"added_tokens_decoder": {"0": "[PAD]"}},
    "an added token without content": {"added_tokens_decoder": {"0": {}}},
    "an added token whose id is a word": {"added_tokens_decoder": {"zero": {"content": "[PAD]"}}},
    "an added token of a negative id": {"added_tokens_decoder": {"-1": {"content": "[X]"}}},
    "an added token of a huge id": {"added_tokens_decoder": {str(2**32 - 2): {"content": "[X]"}}},
    "an added token of an id of many digits": {"added_tokens_decoder": {"9" * 5000: {"content": "[X]"}}},
    "a role that is a number": {"cls_token": 5},
    "a role that is a list": {"sep_token": ["[SEP]"]},
    "a role that is an object": {"mask_token": {"text": "[MASK]"}},
    "special tokens as text": {"added_tokens_decoder": {}, "additional_special_tokens": "abc"},
    "special tokens as a number": {"added_tokens_decoder": {}, "extra_special_tokens": 5},
}


def json_faults() -> Iterator[tuple[str, Callable[[Path], object]]]:
    for name in JSON_FILES:
        for what, ruin in OF_ANY_FILE.items():
            yield f"{name} is {what}", partial(ruin, name)
    for name in OBJECTS:
        yield f"{name} has a key twice", partial(twice, name)
    for key in SIZES:
        for what, value in ODD_SIZES.items():
            yield f"{CONFIG}: {key} is {what}", partial(edit, CONFIG, {key: value})
    for what, value in ODD_NUMBERS.items():
        yield f"{CONFIG}: layer_norm_eps is {what}", partial(edit, CONFIG, {"layer_norm_eps": value})
    for what, changes in CONFIGS.items():
        yield f"{CONFIG}: {what}", partial(edit, CONFIG, changes)
    for what, changes in TOKENIZERS.items():
        yield f"{TOKENIZER}: {what}", partial(edit, TOKENIZER, changes)
    for what, changes in SETTING_FAULTS.items():
        yield f"{SETTINGS}: {what}", partial(edit, SETTINGS, changes)
