"""A tiny model folder, and more than a hundred ways in which a stranger could ruin it or make it hostile.

`FAULTS` maps a name to a function that changes the folder. Each must end in one sentence, quickly and in little memory,
or leave a folder that encodes exactly as before; one that encodes otherwise must be warned of. No code of a folder may
run: pickles here would touch `CANARY` beside the folder. `python -m tests.faults.hostile_folders` tries all of them and
prints what happened.
"""

import os
import pickle
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from tests.faults.hostile_json import json_faults
from tests.faults.ruining import (
    CANARY,
    INDEX,
    LEGACY,
    LIMITS,
    POOL,
    POOLING,
    SETTINGS,
    TABLE,
    TEXTS,
    TOKENIZER,
    WEIGHTS,
    as_adapter,
    as_legacy,
    as_shards,
    become_folder,
    become_huge,
    become_pipe,
    compressed,
    edit,
    edit_tensors,
    expanded,
    factors,
    first_shard,
    first_tensor,
    link,
    make_folder,
    many_views,
    module,
    pickled,
    split_by,
    torch_pickled,
    with_card,
    without_unknown,
    write,
    write_json,
)
from tests.faults.trying import BAD, Tally

import bertie
from bertie.errors import UserError

SECONDS, MEGABYTES = 5, 500  # that a folder may take
WARNED = "warning: "

Fault = Callable[[Path], object]


# --- the table


def faults() -> Iterator[tuple[str, Fault]]:
    yield from json_faults()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        yield f"code in a pickle of protocol {protocol}", partial(as_legacy, partial(pickled, protocol))
    yield from OTHERS.items()


def steps(*changes: Fault) -> Fault:
    def change(folder: Path) -> None:
        for one in changes:
            one(folder)

    return change


def without(*names: str) -> Fault:
    def remove(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return remove


OTHERS: dict[str, Fault] = {
    # Weights
    "weights are missing": lambda folder: (folder / WEIGHTS).unlink(),
    "weights are empty": partial(write, WEIGHTS, b""),
    "weights are text": partial(write, WEIGHTS, b"version https://git-lfs.github.com/spec/v1\n"),
    "weights are an endless device": partial(link, WEIGHTS, "/dev/zero"),
    "weights are a pipe": partial(become_pipe, WEIGHTS),
    "weights are a folder": partial(become_folder, WEIGHTS),
    "weights are a link to themselves": partial(link, WEIGHTS, WEIGHTS),
    "weights have a terabyte behind them": partial(become_huge, WEIGHTS),
    "a header of 2**63 bytes": partial(write, WEIGHTS, struct.pack("<Q", 2**63) + b"{}"),
    "a header of 2**64 - 1 bytes": partial(write, WEIGHTS, struct.pack("<Q", 2**64 - 1) + b"{}"),
    "a header of no bytes": partial(write, WEIGHTS, struct.pack("<Q", 0)),
    "a header that is a list": partial(write, WEIGHTS, struct.pack("<Q", 2) + b"[]"),
    "a header nested a thousand times": partial(write, WEIGHTS, struct.pack("<Q", 1000) + b"[" * 1000),
    "a negative shape": partial(first_tensor, "shape", [-1, 16]),
    "a shape of text": partial(first_tensor, "shape", "16"),
    "a shape of terabytes": partial(first_tensor, "shape", [2**40, 16]),
    "a shape beyond all numbers": partial(first_tensor, "shape", [2**62, 2**62, 2**62]),
    "offsets of another tensor": partial(first_tensor, "data_offsets", [0, 4]),
    "offsets behind the file": partial(first_tensor, "data_offsets", [2**40, 2**41]),
    "offsets in the wrong order": partial(first_tensor, "data_offsets", [64, 0]),
    "negative offsets": partial(first_tensor, "data_offsets", [-64, 0]),
    "an unknown type of numbers": partial(first_tensor, "dtype", "F1024"),
    "a tensor of NaN": partial(edit_tensors, lambda tensors: tensors[POOL].fill_(float("nan"))),
    "one NaN": partial(edit_tensors, lambda tensors: tensors[TABLE].view(-1)[-1:].fill_(float("nan"))),
    "one infinity": partial(edit_tensors, lambda tensors: tensors[TABLE].view(-1)[7:8].fill_(float("inf"))),
    "infinities that cancel": partial(
        edit_tensors, lambda tensors: tensors[TABLE].view(-1)[:2].copy_(torch.tensor([float("inf"), float("-inf")]))
    ),
    "an infinity in half precision": partial(
        edit_tensors, lambda tensors: tensors.update({TABLE: (tensors[TABLE] * 1e9).half()})
    ),
    "a tensor is missing": partial(edit_tensors, lambda tensors: tensors.pop(TABLE)),
    "a tensor of whole numbers": partial(edit_tensors, lambda tensors: tensors.update({TABLE: tensors[TABLE].long()})),
    "a tensor that is one number": partial(edit_tensors, lambda tensors: tensors.update({TABLE: torch.tensor(1.0)})),
    "a tensor on its side": partial(
        edit_tensors, lambda tensors: tensors.update({TABLE: tensors[TABLE].T.contiguous()})
    ),
    "a tensor without numbers": partial(edit_tensors, lambda tensors: tensors.update({TABLE: torch.zeros(0, 16)})),
    "a tensor that nothing uses": partial(edit_tensors, lambda tensors: tensors.update({"extra": torch.zeros(3)})),
    # Legacy weights
    "plain legacy weights": partial(as_legacy, torch.save),
    "code in torch's archive": partial(as_legacy, partial(torch_pickled, True)),
    "code in torch's older file": partial(as_legacy, partial(torch_pickled, False)),
    "an archive that unpacks to more": partial(as_legacy, compressed),
    "a tensor of terabytes that repeats one number": partial(as_legacy, expanded),
    "three thousand views of one tensor": partial(as_legacy, many_views),
    "legacy weights as text": partial(as_legacy, lambda tensors, path: path.write_bytes(b"hello")),
    "legacy weights cut short": steps(partial(as_legacy, torch.save), lambda folder: os.truncate(folder / LEGACY, 500)),
    "legacy weights as a list": partial(as_legacy, lambda tensors, path: torch.save(list(tensors.values()), path)),
    "legacy weights inside a table": partial(as_legacy, lambda tensors, path: torch.save({"model": tensors}, path)),
    "legacy weights that are sparse": partial(
        as_legacy, lambda tensors, path: torch.save({**tensors, TABLE: tensors[TABLE].to_sparse()}, path)
    ),
    "legacy weights are a pipe": partial(as_legacy, lambda tensors, path: os.mkfifo(path)),
    "legacy weights are an endless device": partial(as_legacy, lambda tensors, path: path.symlink_to("/dev/zero")),
    # Shards
    "plain shards": partial(as_shards, lambda index: index),
    "an index that is a list": partial(as_shards, lambda index: [index]),
    "an index without a map": partial(as_shards, lambda index: {"metadata": {}}),
    "an index whose map is text": partial(as_shards, lambda index: {"weight_map": "all"}),
    "a shard that is null": partial(as_shards, partial(first_shard, None)),
    "a shard that is an object": partial(as_shards, partial(first_shard, {"file": {}})),
    "a shard outside the folder": partial(as_shards, partial(first_shard, "../base/model.safetensors")),
    "a shard at the root": partial(as_shards, partial(first_shard, "/etc/passwd")),
    "a shard that is the folder": partial(as_shards, partial(first_shard, ".")),
    "a shard with NUL in its name": partial(as_shards, partial(first_shard, "a\0b.safetensors")),
    "a shard of an endless name": partial(as_shards, partial(first_shard, "a" * 10**5)),
    "a shard that is the index": partial(as_shards, partial(first_shard, INDEX)),
    # Tokenizers
    "a regular expression that never ends": partial(split_by, "(a+)+b"),
    "a regular expression that is none": partial(split_by, "(((["),
    "a WordPiece without its unknown token": without_unknown,
    "vocab.txt is an endless device": steps(without(TOKENIZER), partial(link, "vocab.txt", "/dev/zero")),
    "vocab.txt is a pipe": steps(without(TOKENIZER), partial(become_pipe, "vocab.txt")),
    "vocab.txt is not UTF-8": steps(without(TOKENIZER), partial(write, "vocab.txt", b"a\n\xff\n")),
    "spiece.model is rubbish": steps(
        without(TOKENIZER, "vocab.txt"), partial(write, "spiece.model", bytes(range(256)) * 9)
    ),
    "added_tokens.json with ids of text": steps(
        without(SETTINGS), partial(write, "added_tokens.json", b'{"[X]": "five"}')
    ),
    # sentence-transformers
    "a module outside the folder": steps(
        lambda folder: shutil.copytree(folder, folder.parent / "base"),
        lambda folder: write_json(folder / "modules.json", [module("../base/1_Pooling", "Pooling")]),
    ),
    "a module at the root": lambda folder: write_json(
        folder / "modules.json", [module("", "Transformer"), module(str(folder / "1_Pooling"), "Pooling")]
    ),
    "a module behind a link": steps(
        lambda folder: shutil.copytree(folder, folder.parent / "base"), partial(link, "1_Pooling", "../base/1_Pooling")
    ),
    "a module behind a link to itself": partial(link, "1_Pooling", "1_Pooling"),
    "a module with NUL in its path": lambda folder: write_json(folder / "modules.json", [module("a\0b", "Pooling")]),
    "a module whose path is a number": lambda folder: write_json(folder / "modules.json", [module(5, "Pooling")]),
    "modules that are text": lambda folder: write_json(folder / "modules.json", ["Transformer"]),
    "an unknown module": lambda folder: write_json(folder / "modules.json", [module("", "Exec")]),
    "a pooling of a number": lambda folder: write_json(folder / POOLING, {"pooling_mode": 5}),
    "a pooling of an object": lambda folder: write_json(folder / POOLING, {"pooling_mode": {"mean": 1}}),
    "a pooling of lists": lambda folder: write_json(folder / POOLING, {"pooling_mode": [["mean"]]}),
    "a pooling of null": lambda folder: write_json(folder / POOLING, {"pooling_mode": [None]}),
    "no pooling": lambda folder: write_json(folder / POOLING, {}),
    "a length of text": partial(edit, LIMITS, {"max_seq_length": "64"}),
    "a length of truth": partial(edit, LIMITS, {"max_seq_length": True}),
    "a length of 10**30": partial(edit, LIMITS, {"max_seq_length": 10**30}),
    "prompts that are a list": partial(edit, "config_sentence_transformers.json", {"prompts": ["a"]}),
    "a default prompt that is a list": partial(edit, "config_sentence_transformers.json", {"default_prompt_name": []}),
    # Adapters
    "a plain adapter that changes nothing": partial(as_adapter, {}, factors()),
    "an adapter of a huge product": partial(as_adapter, {}, factors(width=10**6)),
    "an adapter of NaN": partial(as_adapter, {}, factors(value=float("nan"))),
    "an adapter with a scale of text": partial(as_adapter, {"lora_alpha": "8"}, factors()),
    "an adapter with an infinite scale": partial(as_adapter, {"lora_alpha": float("inf")}, factors()),
    "an adapter with patterns as a list": partial(as_adapter, {"alpha_pattern": [1]}, factors()),
    "an adapter with a pattern that is none": partial(as_adapter, {"alpha_pattern": {"(((": 1}}, factors()),
    "an adapter with a pattern that never ends": partial(as_adapter, {"alpha_pattern": {"(.+)+x": 1}}, factors()),
    "an adapter of another type": partial(as_adapter, {"peft_type": ["LORA"]}, factors()),
    "an adapter of a task that is a list": partial(as_adapter, {"task_type": []}, factors()),
    "an adapter of itself": partial(as_adapter, {"base_model_name_or_path": "."}, factors()),
    "an adapter of nothing": partial(as_adapter, {"base_model_name_or_path": None}, factors()),
    "an adapter of a device": partial(as_adapter, {"base_model_name_or_path": "/dev/zero"}, factors()),
    "an adapter without its other half": partial(as_adapter, {}, dict([next(iter(factors().items()))])),
    # bertie.json
    "a card without changes": partial(with_card, {}),
    "a recipe that is a list": partial(with_card, {"recipe": []}),
    "a recipe of an unknown kind": partial(with_card, {"recipe.objectives": [{"kind": "exec"}]}),
    "a recipe of 10**7 layers": partial(with_card, {"recipe.encoder.stack.depth": 10**7}),
    "a recipe of a width of 10**12": partial(with_card, {"recipe.encoder.width": 10**12}),
    "a recipe of an infinite norm": partial(with_card, {"recipe.encoder.embeddings.norm_eps": float("inf")}),
    "a length that is a list": partial(with_card, {"length": []}),
    "a length that is NaN": partial(with_card, {"length": float("nan")}),
}
FAULTS: dict[str, Fault] = dict(faults())


# --- trying them


def memory(peak: bool = False) -> float:
    """Megabytes that the process holds, or held at most since `forget_peak`."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    lines = Path("/proc/self/status").read_text().splitlines() if sys.platform == "linux" else []
    found = [int(line.split()[1]) / 1024 for line in lines if line.startswith(wanted)]
    return found[0] if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak() -> None:
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")


def vectors(folder: Path) -> np.ndarray:
    model = bertie.load(folder)
    model.max_length_for()
    return model.encode(TEXTS)


def attempt(name: str, pristine: Path, work: Path, expected: np.ndarray) -> tuple[str, float, float]:
    """Ruins a copy of the folder and opens it. Returns the sentence that refused it or warned of it, "" where the
    vectors are the same as before, the seconds, and the megabytes that it took on top. Anything else is raised."""
    folder = work / "model"
    shutil.copytree(pristine, folder)
    FAULTS[name](folder)
    forget_peak()
    before, start, said = memory(), time.monotonic(), ""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            if not np.array_equal(vectors(folder), expected):
                own = [str(one.message) for one in warned if str(folder) in str(one.message)]
                assert own, f"{name}: other vectors, and not a word"
                said = f"{WARNED}{own[0]}"
        except UserError as error:
            said = str(error)
            assert said and "\n" not in said, f"{name}: not one sentence: {said}"
    took, extra = time.monotonic() - start, memory(peak=True) - before
    assert not (work / CANARY).exists(), f"{name}: code of the folder ran"
    return said, took, extra


def main() -> int:
    """Prints every outcome. Returns the number of faults that went wrong."""
    wrong = 0
    with tempfile.TemporaryDirectory() as place:
        pristine = Path(place, "pristine")
        make_folder(pristine)
        expected = vectors(pristine)
        for number, name in enumerate(FAULTS):
            work = Path(place, str(number))
            work.mkdir()
            try:
                said, took, extra = attempt(name, pristine, work, expected)
                kind = "announced" if said.startswith(WARNED) else "clean error" if said else "same result"
                if took > SECONDS or extra > MEGABYTES:
                    kind, said = "crash or hang", f"{took:.1f} s, {extra:.0f} MB: {said}"
            except BaseException as error:  # a panic of a library is no Exception
                if isinstance(error, KeyboardInterrupt):
                    raise
                kind = "silent wrong" if isinstance(error, AssertionError) else "traceback"
                said = f"{type(error).__name__}: {error}"
            wrong += kind in BAD
            sys.stdout.write(f"{kind}\t{name}\t{said.replace(str(work), '...')[:300].splitlines()[:1]}\n")
            sys.stdout.flush()
    return wrong


def rows() -> Iterator[Tally]:
    """Of the table of `make faults`. They are tried in a process of their own, which computes."""
    done = subprocess.run([sys.executable, "-m", "tests.faults.hostile_folders"], capture_output=True, text=True)
    tally = Tally("hostile folder", "model folder")
    for line in done.stdout.splitlines():
        kind, name, said = line.split("\t")
        tally.add(kind, f"{name}: {said}")
    if tally.tries < len(FAULTS):
        tally.add("crash or hang", f"after {tally.tries} folders: {done.stderr[-300:]}")
    yield tally


if __name__ == "__main__":
    sys.exit(min(main(), 1))
