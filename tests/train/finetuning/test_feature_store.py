"""Stored features: training over them is training over the frozen encoder, which runs but once."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import bertie
from bertie.batch import Batch, Ragged
from bertie.data.rows import open_rows
from bertie.errors import FolderError, InputError, SpecError
from bertie.models.answering_rows import answers_of
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe
from bertie.nn.encoder import Encoder
from bertie.nn.feature_top import FEATURES, FeatureTopSpec, LSTMLayersSpec
from bertie.reporting.events import Event, ignore
from bertie.tasks.answering import Answering
from bertie.tasks.choosing import Choice
from bertie.tasks.classification import Classify
from bertie.tasks.labelled import Labelled
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.finetuning import feature_store
from bertie.train.finetuning.feature_store import store_features
from bertie.train.finetuning.finetuning import FinetuneOptions, PreparedTask, finetune, fit
from bertie.train.folder.checkpoint import WEIGHTS

Record = dict[str, Any]
LAST = FeatureTopSpec()
LENGTH = 20


@pytest.fixture
def base(tokenizer: Tokenizer, recipe: Callable[..., Recipe]) -> Pretrained:
    return Pretrained(Model.new(recipe(dropout=0.1).changed({"encoder.stack.depth": 4})), tokenizer)


@pytest.fixture
def num_runs(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often the encoder ran over a batch, by whichever way."""
    calls = []
    forward = torch.nn.Module.__call__

    def counted(self: torch.nn.Module, *inputs: Any, **named: Any) -> Any:
        if type(self).__name__ == "Embeddings":
            calls.append(self)
        return forward(self, *inputs, **named)

    monkeypatch.setattr(torch.nn.Module, "__call__", counted)
    return lambda: len(calls)


def planted(count: int, start: int = 0) -> list[Record]:
    """The label, the tags and the answer say where w1 and w2 are."""
    made = []
    for number in range(start, start + count):
        word = f"w{1 + number % 2}"
        words = [*(f"w{5 + (number + k) % 7}" for k in range(number % 3 + 1)), word, f"w{12 + number % 5}"]
        passage = " ".join(words)
        tags = ["B-X" if one == word else "O" for one in words]
        answers = [{"text": word, "answer_start": passage.index(word)}]
        made.append(
            {"text": passage, "label": word, "words": words, "tags": tags, "answers": answers, "question": "w20"}
        )
    return made


KINDS: dict[str, tuple[Task, dict[str, str]]] = {
    "classify": (Classify(), {"text": "text", "label": "label"}),
    "tag": (Tagging(), {"words": "words", "tags": "tags"}),
    "answer": (Answering(), {"question": "question", "passage": "text", "answers": "answers"}),
}


def write(path: Path, rows: list[Record]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "train.jsonl", planted(21)), write(tmp_path / "dev.jsonl", planted(6, 50))


def job_of(base: Pretrained, files: tuple[Path, Path], kind: str = "classify", length: int = LENGTH) -> PreparedTask:
    task, columns = KINDS[kind]
    train, dev = (Labelled(open_rows([path]), columns) for path in files)
    assert base.tokenizer is not None
    return PreparedTask.of(fit(task, train, "refuse"), train, dev, base.tokenizer, length, "refuse")


def run(folder: Path, base: Pretrained, jobs: list[PreparedTask], top: FeatureTopSpec | None, **fields: Any) -> Record:
    quick = {"optimizer": {"kind": "adamw", "rate": 1e-2}, "length": LENGTH, "top": top, **fields}
    options = FinetuneOptions.of_epochs([job.train.num_samples for job in jobs], 2, 4, quick)
    return finetune(folder, base, jobs, options).summary


def messages(events: list[Event]) -> list[str]:
    return [event.message for event in events if event.message]


def losses(folder: Path) -> list[float]:
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [record["loss"] for record in log if record["event"] in ("step", "evaluation")]


def weights(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model" / "model.safetensors")


@pytest.mark.parametrize(
    ("kind", "top"),
    [
        ("classify", FeatureTopSpec(layers="weighted")),
        ("classify", FeatureTopSpec(layers="second-last", lstm=LSTMLayersSpec())),
        ("tag", FeatureTopSpec(layers="sum4")),
        ("tag", FeatureTopSpec(layers="concat4", lstm=LSTMLayersSpec(width=10))),
        ("answer", LAST),
    ],
    ids=str,
)
def test_a_run_over_stored_features_is_one_over_the_frozen_encoder(
    base: Pretrained, files: tuple[Path, Path], kind: str, top: FeatureTopSpec, tmp_path: Path
) -> None:
    stored = job_of(base, files, kind)
    (stored,) = store_features(tmp_path / "features", base, [stored], top, ignore)
    run(tmp_path / "stored", base, [stored], top)
    run(tmp_path / "plain", base, [job_of(base, files, kind)], top)
    assert losses(tmp_path / "stored") == pytest.approx(losses(tmp_path / "plain"), rel=1e-4)
    first, second = weights(tmp_path / "stored"), weights(tmp_path / "plain")
    assert first.keys() == second.keys()
    before = base.model.state_dict()
    for name, tensor in first.items():
        torch.testing.assert_close(tensor, second[name], atol=1e-4, rtol=1e-3)
        if name.startswith(("encoder.embeddings.", "encoder.stack.")):
            assert tensor.equal(before[name]), f"{name} is frozen"
    assert any(name.startswith("heads.") for name in first)


def test_the_encoder_runs_once_and_never_again(
    base: Pretrained, files: tuple[Path, Path], num_runs: Callable[[], int], tmp_path: Path
) -> None:
    job, events = job_of(base, files, "tag"), list[Event]()
    (job,) = store_features(tmp_path / "features", base, [job], LAST, events.append)
    computed = num_runs()
    assert computed == 3, "one batch of train, one of dev, and one to see how the task reads"
    text = messages(events)[0]
    assert "features of 21 rows" in text and "MB" in text and str(tmp_path / "features") in text
    run(tmp_path / "first", base, [job], LAST)
    run(tmp_path / "second", base, [job], LAST, seed=1)
    assert num_runs() == computed, "neither steps nor evaluations ran it"
    again = job_of(base, files, "tag")
    (again,) = store_features(tmp_path / "features", base, [again], LAST, events.append)
    run(tmp_path / "third", base, [again], LAST)
    assert num_runs() == computed + 1 and "are stored already" in messages(events)[-1]
    assert weights(tmp_path / "third")["heads.tag.output.weight"].equal(
        weights(tmp_path / "first")["heads.tag.output.weight"]
    )


def test_as_few_numbers_are_kept_as_the_model_needs(base: Pretrained, files: tuple[Path, Path], tmp_path: Path) -> None:
    lstm, num_layers = FeatureTopSpec(lstm=LSTMLayersSpec()), 5
    sizes = {}
    for name, kind, top in (
        ("mean", "classify", LAST),
        ("layers", "classify", FeatureTopSpec(layers="weighted")),
        ("words", "tag", LAST),
        ("tokens", "tag", lstm),
        ("all", "answer", LAST),
    ):
        store_features(tmp_path / name, base, [job_of(base, files, kind)], top, ignore)
        sizes[name] = sum(path.stat().st_size for path in (tmp_path / name).glob("*.f32"))
        facts = [json.loads(path.read_text()) for path in (tmp_path / name).glob("*.json")]
        assert sum(one["bytes"] for one in facts) == sizes[name] and sum(one["rows"] for one in facts) == 27
    row = 32 * 4
    num_words = sum(len(one["words"]) for one in [*planted(21), *planted(6, 50)])
    assert sizes["mean"] == 27 * row and sizes["layers"] == num_layers * sizes["mean"]
    assert sizes["words"] == num_words * row
    assert sizes["tokens"] == (num_words + 2 * 27) * row, "with the special ones"
    assert sizes["all"] == (num_words + 4 * 27) * row, "and the question"


def test_what_decides_the_numbers_decides_the_file(base: Pretrained, files: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "features"

    def names(model: Pretrained, top: FeatureTopSpec = LAST, **fields: Any) -> set[str]:
        before = {path.name for path in folder.glob("*.f32")}
        store_features(folder, model, [job_of(model, files, **fields)], top, ignore)
        return {path.name for path in folder.glob("*.f32")} - before

    assert len(names(base)) == 2
    assert not names(base)
    assert len(names(base, FeatureTopSpec(layers="sum4"))) == 2
    assert len(names(base, FeatureTopSpec(lstm=LSTMLayersSpec()))) == 2, "another top needs all tokens"
    assert not names(base, FeatureTopSpec(lstm=LSTMLayersSpec(depth=1, width=4)))
    assert len(names(base, length=8)) == 0, "no row is that long"
    assert len(names(Pretrained(Model.new(base.recipe, seed=1), base.tokenizer))) == 2
    rows = planted(21)
    write(files[0], [{**row, "label": "w2" if row["label"] == "w1" else "w1"} for row in rows])
    assert not names(base), "labels are no part of it"
    write(files[0], [*rows[:-1], {**rows[-1], "text": "w9"}])
    assert len(names(base)) == 1


def features_of(job: PreparedTask) -> Tensor:
    read = [example for example in map(job.train.example, range(job.train.num_samples)) if example is not None]
    return torch.cat([torch.from_numpy(sample[FEATURES].copy()) for one in read for sample in one.samples])  # type: ignore[union-attr]


def test_half_a_file_is_never_used(base: Pretrained, files: tuple[Path, Path], tmp_path: Path) -> None:
    whole, folder = job_of(base, files), tmp_path / "features"
    (whole,) = store_features(folder, base, [whole], LAST, ignore)
    wanted = features_of(whole).clone()
    path = max(folder.glob("*.f32"), key=lambda one: one.stat().st_size)
    path.write_bytes(path.read_bytes()[:-4])
    again = job_of(base, files)
    (again,) = store_features(folder, base, [again], LAST, ignore)
    torch.testing.assert_close(features_of(again), wanted)
    assert not list(folder.glob("*.part"))


def test_what_was_killed_goes_on(
    base: Pretrained, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = job_of(base, files)
    (whole,) = store_features(tmp_path / "whole", base, [whole], LAST, ignore)
    monkeypatch.setattr(feature_store, "WINDOW_ROWS", 4)
    features = Encoder.features
    calls: Iterator[int] = iter(range(100))

    def killed(self: Encoder, batch: Batch) -> Ragged:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return features(self, batch)

    with monkeypatch.context() as patched:
        patched.setattr(Encoder, "features", killed)
        with pytest.raises(KeyboardInterrupt):
            store_features(tmp_path / "killed", base, [job_of(base, files)], LAST, ignore)
    (part,) = (tmp_path / "killed").glob("*.part")
    assert part.stat().st_size == 12 * 32 * 4 and not list((tmp_path / "killed").glob("*.f32"))
    with part.open("ab") as file:
        file.write(b"half of a row")
    again, events = job_of(base, files), list[Event]()
    (again,) = store_features(tmp_path / "killed", base, [again], LAST, events.append)
    assert "continuing after 12 rows" in messages(events)
    torch.testing.assert_close(features_of(again), features_of(whole))


def test_progress_is_told_of_every_batch(
    base: Pretrained, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = list[Event]()
    monkeypatch.setattr(feature_store, "BATCH_TOKENS", 24)
    store_features(tmp_path / "features", base, [job_of(base, files)], LAST, events.append)
    steps = [one.data["done"] for one in events if one.data.get("stage") == "computing features"]
    done = steps[: steps.index(21) + 1]
    assert done == sorted(done) and len(done) > 2, "long before the rows are written"


def test_a_full_disk_is_told_before_anything_is_computed(
    base: Pretrained, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature_store.shutil, "disk_usage", lambda path: SimpleNamespace(free=100))
    with pytest.raises(FolderError, match=r"the features take .* GB, the disk has .* GB") as caught:
        store_features(tmp_path / "features", base, [job_of(base, files)], LAST, ignore)
    assert "`feature_store`" in str(caught.value)
    with pytest.raises(FolderError, match=r"features cannot be stored .*`feature_store`"):
        store_features(files[0], base, [job_of(base, files)], LAST, ignore)


def test_a_stopped_run_goes_on_to_the_same_bits_without_the_encoder_in_its_checkpoints(
    base: Pretrained,
    files: tuple[Path, Path],
    tmp_path: Path,
    stopped_after: Callable[[int], AbstractContextManager[None]],
) -> None:
    top = FeatureTopSpec(layers="weighted", lstm=LSTMLayersSpec(depth=1))

    def go(name: str) -> None:
        job = job_of(base, files, "tag")
        (job,) = store_features(tmp_path / "features", base, [job], top, ignore)
        run(tmp_path / name, base, [job], top)

    go("whole")
    with stopped_after(7):
        go("stopped")
    kept = load_file(next((tmp_path / "stopped" / "checkpoints").glob("step-*")) / WEIGHTS)
    assert all(name.startswith(("encoder.top.", "heads.")) for name in kept)
    go("stopped")
    ends = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "stopped")]
    assert ends[0] == ends[1]


@pytest.mark.filterwarnings("ignore:this model was not trained to compare")
def test_the_folder_is_one_whole_model(base: Pretrained, files: tuple[Path, Path], tmp_path: Path) -> None:
    top = FeatureTopSpec(layers="concat4", lstm=LSTMLayersSpec(width=10))
    job = job_of(base, files, "tag")
    (job,) = store_features(tmp_path / "features", base, [job], top, ignore)
    summary = run(tmp_path / "run", base, [job], top)
    assert any("bertie's own names" in note for note in summary["notes"])
    opened = bertie.load(tmp_path / "run")
    assert opened.recipe.encoder.top == top
    (task,) = opened.recipe.objectives
    assert isinstance(task, Tagging)
    examples = job_of(base, files, "tag").dev
    assert examples is not None
    answers = [answer for _, answer in answers_of(opened.model, task, examples.all())]
    scores = task.score(answers, [example.gold for example in examples.all()])
    assert scores["f1"] == pytest.approx(summary["evaluation"]["f1"])
    assert opened.encode("w1 w2").shape == (10,)
    assert opened.encode("w1 w2", layers="concat4").shape == (4 * 32,)
    assert len(opened.hidden_states("w1 w2")) == 5
    with pytest.warns(UserWarning, match="bertie's own names"):
        opened.save(tmp_path / "copy")
    assert bertie.load(tmp_path / "copy").digest == opened.digest
    assert not any(one.requires_grad for one in opened.model.encoder.stack.parameters())


def test_a_whole_model_may_be_trained_from_one_with_features(
    base: Pretrained, files: tuple[Path, Path], tmp_path: Path
) -> None:
    run(tmp_path / "frozen", base, [job_of(base, files)], LAST)
    opened = bertie.load(tmp_path / "frozen")
    run(tmp_path / "whole", opened, [job_of(opened, files)], None)
    trained = bertie.load(tmp_path / "whole")
    assert trained.recipe.encoder.top is None
    name = "stack.blocks.0.mixer.part.output.weight"
    assert not trained.model.encoder.get_parameter(name).equal(base.model.encoder.get_parameter(name))


def test_several_tasks_have_their_own_features(base: Pretrained, files: tuple[Path, Path], tmp_path: Path) -> None:
    jobs = [job_of(base, files, kind) for kind in ("classify", "tag")]
    jobs = store_features(tmp_path / "features", base, jobs, LAST, ignore)
    run(tmp_path / "stored", base, jobs, LAST)
    run(tmp_path / "plain", base, [job_of(base, files, kind) for kind in ("classify", "tag")], LAST)
    assert losses(tmp_path / "stored") == pytest.approx(losses(tmp_path / "plain"), rel=1e-4)


def test_rows_that_cannot_be_used_have_none(base: Pretrained, files: tuple[Path, Path], tmp_path: Path) -> None:
    rows = planted(8)
    rows[3] = {**rows[3], "text": " "}
    train = Labelled(open_rows([write(files[0], rows)]), KINDS["classify"][1])
    assert base.tokenizer is not None
    job = PreparedTask.of(fit(Classify(), train, "skip"), train, None, base.tokenizer, LENGTH, "skip")
    (job,) = store_features(tmp_path / "features", base, [job], LAST, ignore)
    assert [None if one is None else len(one.samples) for one in map(job.train.example, range(5))] == [1, 1, 1, None, 1]
    plain = PreparedTask.of(job.task, train, None, base.tokenizer, LENGTH, "skip")
    assert features_of(job).shape == (7, 32)
    run(tmp_path / "stored", base, [job], LAST)
    run(tmp_path / "plain", base, [plain], LAST)
    assert losses(tmp_path / "stored") == pytest.approx(losses(tmp_path / "plain"), rel=1e-4)
    none = Labelled(open_rows([write(files[0], [{"text": " ", "label": "w1"}])]), KINDS["classify"][1])
    empty = PreparedTask.of(job.task, none, None, base.tokenizer, LENGTH, "skip")
    with pytest.raises(InputError, match="no row can be used"):
        store_features(tmp_path / "features", base, [empty], LAST, ignore)


def test_a_task_that_reads_texts_apart_is_refused(base: Pretrained, files: tuple[Path, Path], tmp_path: Path) -> None:
    rows = [{"text": "w1", "candidates": ["w2", "w3"], "label": number % 2} for number in range(4)]
    columns = {name: name for name in rows[0]}
    train = Labelled(open_rows([write(files[0], rows)]), columns)
    assert base.tokenizer is not None
    job = PreparedTask.of(fit(Choice(), train, "refuse"), train, None, base.tokenizer, LENGTH, "refuse")
    with pytest.raises(SpecError, match="choice encodes the texts of a row separately"):
        (job,) = store_features(tmp_path / "features", base, [job], LAST, ignore)
    assert not (tmp_path / "features").exists()


def test_an_adversary_is_refused(base: Pretrained, files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="an adversary would change them"):
        run(tmp_path / "run", base, [job_of(base, files)], LAST, adversary={"kind": "fgm"})
    assert not (tmp_path / "run").exists()
