"""Model folders that were broken on purpose, each in one thing: refused with one sentence, soon and in little memory.

The folder is as another library writes it, without digests: what is wrong has to be seen in the files themselves.
"""

import json
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from tests.faults.trying import Tally, run
from tests.faults.workplace import Workplace, copy

SECONDS = 30
WEIGHTS = "model.safetensors"
HUGE = 10**19


@dataclass(frozen=True)
class Mutation:
    name: str
    component: str
    change: Callable[[Path], object]
    may_open: bool = False  # nothing in the folder says that it is wrong


def mutations() -> Iterator[Mutation]:
    yield from config_values()
    yield from whole_files()
    yield from weight_files()
    yield from tokenizers()
    yield from sentence_files()


def config_values() -> Iterator[Mutation]:
    def values(name: str, *found: Any, may_open: bool = False) -> Iterator[Mutation]:
        for value in found:
            shown = f"{name}={json.dumps(value)[:30]}"
            yield Mutation(shown, "config.json", edit("config.json", **{name: value}), may_open)

    wrong: tuple[Any, ...] = (-1, 10**9, HUGE, "many", None, [], {}, 1.5)
    for name in ("num_hidden_layers", "hidden_size", "vocab_size", "intermediate_size"):
        yield from values(name, *wrong)
    yield from values("num_hidden_layers", 0, True, may_open=True)  # what is left is a model, and says what is not used
    for name in ("hidden_size", "vocab_size", "intermediate_size"):
        yield from values(name, 0, True)
    yield from values("num_attention_heads", -1, 0, 3, 10**9, "two", None)
    yield from values("max_position_embeddings", -1, 0, HUGE, "long")
    yield from values("type_vocab_size", -1, HUGE, "two")
    yield from values("layer_norm_eps", float("inf"), float("nan"), -1.0, "small")
    yield from values("hidden_dropout_prob", 2.0, -1.0, "often", may_open=True)
    yield from values("hidden_act", "nosuch", 5, None, "__import__('os').system('true')")
    yield from values("model_type", "nosuch", 5, [], {"a": 1})
    yield from values("num_hidden_layers", 10**7)


def whole_files() -> Iterator[Mutation]:
    deep = "[" * 100_000 + "]" * 100_000
    contents = {
        "empty": b"",
        "a list": b"[]",
        "null": b"null",
        "nested": ('{"a":' + deep + "}").encode(),
        "not UTF-8": b'{"a": "\xff"}',
        "cut": b'{"model_type": "be',
        "binary": os.urandom(1000),
    }
    for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        for name, content in contents.items():
            plain = file == "tokenizer_config.json" and name in ("empty", "a list", "null")
            yield Mutation(f"{file}: {name}", file, replace(file, content), may_open=plain)
        yield Mutation(f"{file}: a folder", file, as_folder(file))
        yield Mutation(f"{file}: an endless device", file, as_link(file, "/dev/zero"))
        yield Mutation(f"{file}: a loop", file, as_link(file, file))
        yield Mutation(f"{file}: a pipe", file, as_pipe(file))
    yield Mutation("config.json: missing", "config.json", lambda folder: (folder / "config.json").unlink())


def weight_files() -> Iterator[Mutation]:
    def header(length: int, content: bytes = b"{}") -> Callable[[Path], object]:
        return replace(WEIGHTS, struct.pack("<Q", length) + content)

    def tensors(change: Callable[[dict[str, np.ndarray]], object]) -> Callable[[Path], object]:
        def act(folder: Path) -> None:
            table = load_file(folder / WEIGHTS)
            change(table)
            save_file(table, folder / WEIGHTS, metadata={"format": "pt"})

        return act

    def fill(value: float) -> Callable[[dict[str, np.ndarray]], object]:
        def change(table: dict[str, np.ndarray]) -> None:
            name = next(name for name in sorted(table) if "word_embeddings" in name)
            table[name] = np.full_like(table[name], value)

        return change

    entry = b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,%d]}}'
    yield Mutation("weights: missing", WEIGHTS, lambda folder: (folder / WEIGHTS).unlink())
    yield Mutation("weights: empty", WEIGHTS, replace(WEIGHTS, b""))
    yield Mutation("weights: random", WEIGHTS, replace(WEIGHTS, os.urandom(5000)))
    yield Mutation("weights: header beyond the file", WEIGHTS, header(1 << 40))
    yield Mutation("weights: header of all bits", WEIGHTS, header((1 << 64) - 1))
    yield Mutation("weights: empty header", WEIGHTS, header(2))
    yield Mutation("weights: offsets beyond the file", WEIGHTS, header(len(entry % 16), entry % 16))
    yield Mutation("weights: wrong size", WEIGHTS, header(len(entry % 8), entry % 8 + bytes(8)))
    yield Mutation("weights: cut", WEIGHTS, lambda folder: os.truncate(folder / WEIGHTS, 2000))
    yield Mutation("weights: NaN", WEIGHTS, tensors(fill(float("nan"))))
    yield Mutation("weights: infinite", WEIGHTS, tensors(fill(float("inf"))))
    yield Mutation("weights: a tensor less", WEIGHTS, tensors(lambda table: table.pop(sorted(table)[0])))
    yield Mutation("weights: other shapes", WEIGHTS, tensors(lambda table: table.update(halved(table))))
    yield Mutation("weights: an endless device", WEIGHTS, as_link(WEIGHTS, "/dev/zero"))
    yield Mutation("weights: a pipe", WEIGHTS, as_pipe(WEIGHTS))
    yield Mutation("weights: a folder", WEIGHTS, as_folder(WEIGHTS))
    for name, content in (
        ("runs code", b"cos\nsystem\n(S'touch /tmp/bertie-was-here'\ntR."),
        ("is no pickle", b"hello"),
        ("is empty", b""),
    ):
        yield Mutation(f"pytorch_model.bin: {name}", "pytorch_model.bin", legacy(content))
    for name, index in (
        ("outside", {"weight_map": {"a": "../../etc/passwd"}}),
        ("a list", []),
        ("no map", {}),
        ("a number", {"weight_map": {"a": 5}}),
        ("itself", {"weight_map": {"a": f"{WEIGHTS}.index.json"}}),
    ):
        yield Mutation(f"shard index: {name}", "shard index", sharded(json.dumps(index).encode()))
    yield Mutation("shard index: nested", "shard index", sharded(b"[" * 100_000))


def tokenizers() -> Iterator[Mutation]:
    def model(**changes: Any) -> Callable[[Path], object]:
        def act(folder: Path) -> None:
            content = json.loads((folder / "tokenizer.json").read_text())
            content["model"].update(changes)
            (folder / "tokenizer.json").write_text(json.dumps(content))

        return act

    file = "tokenizer.json"
    panic = {"type": "Split", "pattern": {"Regex": "(x+x+)+y"}, "behavior": "Isolated", "invert": False}
    yield Mutation("tokenizer: unknown token missing", file, model(unk_token="[NOSUCH]"))
    yield Mutation("tokenizer: huge id", file, model(vocab={"[UNK]": 0, "[MASK]": 2**32 - 2, "[CLS]": 1, "[SEP]": 2}))
    yield Mutation("tokenizer: negative id", file, model(vocab={"[UNK]": -1}))
    yield Mutation("tokenizer: no vocabulary", file, model(vocab={}))
    yield Mutation("tokenizer: nosuch type", file, model(type="NoSuch"))
    yield Mutation("tokenizer: pattern that panics", file, edit(file, pre_tokenizer=panic), may_open=True)
    yield Mutation("tokenizer: normalizer of a number", file, edit(file, normalizer=5))
    yield Mutation("tokenizer: decoder of a number", file, edit(file, decoder=5))
    yield Mutation("tokenizer: added tokens of a number", file, edit(file, added_tokens=5))


def sentence_files() -> Iterator[Mutation]:
    def modules(content: Any, inner: Any = None) -> Callable[[Path], object]:
        def act(folder: Path) -> None:
            (folder / "modules.json").write_text(json.dumps(content))
            (folder / "1_Pooling").mkdir()
            if inner is not None:
                (folder / "1_Pooling" / "config.json").write_text(json.dumps(inner))

        return act

    first = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    pooling = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
    outside = {**pooling, "path": "../../../etc"}
    mean = {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True}
    yield Mutation("modules.json: outside", "modules.json", modules([first, outside], mean))
    yield Mutation("modules.json: absolute", "modules.json", modules([first, {**pooling, "path": "/etc"}], mean))
    yield Mutation("modules.json: a number", "modules.json", modules(5))
    yield Mutation("modules.json: an object", "modules.json", modules({"a": 1}))
    yield Mutation("modules.json: code", "modules.json", modules([first, {**pooling, "type": "os.system"}], mean))
    yield Mutation("modules.json: no pooling config", "modules.json", modules([first, pooling]))
    yield Mutation("pooling: odd modes", "modules.json", modules([first, pooling], {"pooling_mode": ["a", 5]}))
    yield Mutation("pooling: a list", "modules.json", modules([first, pooling], []))


def edit(file: str, **changes: Any) -> Callable[[Path], object]:
    def act(folder: Path) -> None:
        content = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps({**content, **changes}))

    return act


def replace(file: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / file).write_bytes(content)


def instead(file: str, make: Callable[[Path], object]) -> Callable[[Path], object]:
    """Puts something else in the place of a file."""

    def act(folder: Path) -> None:
        (folder / file).unlink(missing_ok=True)
        make(folder / file)

    return act


def as_folder(file: str) -> Callable[[Path], object]:
    return instead(file, Path.mkdir)


def as_link(file: str, target: str) -> Callable[[Path], object]:
    return instead(file, lambda path: path.symlink_to(target))


def as_pipe(file: str) -> Callable[[Path], object]:
    return instead(file, os.mkfifo)


def legacy(content: bytes) -> Callable[[Path], object]:
    return instead(WEIGHTS, lambda path: path.with_name("pytorch_model.bin").write_bytes(content))


def sharded(index: bytes) -> Callable[[Path], object]:
    return instead(WEIGHTS, lambda path: path.with_name(f"{WEIGHTS}.index.json").write_bytes(index))


def halved(table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.ascontiguousarray(value[: len(value) // 2]) for name, value in table.items() if value.ndim == 2}


def rows(place: Workplace, work: Path, tries: int | None = None) -> list[Tally]:
    """One row per kind of file. Fewer tries are spread over the table."""
    table = list(mutations())
    chosen = table if tries is None or tries >= len(table) else table[:: max(1, len(table) // tries)]
    source, target = copy(place.model, work / "foreign"), work / "hostile"
    (source / "bertie.json").unlink()
    out = work / "hostile.npy"
    ran = run("embed", source, place.lines, "--out", out)
    assert ran.code == 0, ran.stderr
    wanted = out.read_bytes()
    tallies: dict[str, Tally] = {}
    for one in chosen:
        tally = tallies.setdefault(one.component, Tally("hostile folder", one.component))
        one.change(copy(source, target))
        for left in work.glob("hostile.npy*"):
            left.unlink()
        ran = run("embed", target, place.lines, "--out", out, seconds=SECONDS)
        if ran.fault:
            tally.add(ran.fault, one.name, ran)
        elif ran.is_clean_error:
            tally.add("clean error")
        elif out.read_bytes() == wanted:
            tally.add("same result")
        else:
            tally.add("opened" if one.may_open else "silent wrong", f"{one.name}: opened", ran)
        shutil.rmtree(target, ignore_errors=True)
    return list(tallies.values())
