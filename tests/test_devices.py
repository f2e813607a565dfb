"""Choosing a device, what a GPU does differently as far as a CPU can show it, and checkpoints that change devices."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.tasks.learning import TASKS, new_model, read, tokenizer
from torch import Tensor

import bertie
from bertie import devices
from bertie.batch import PART_FIELDS, Batch, Pointers, Ragged
from bertie.devices import CPU, RandomState, attend_flat, choose_device, fetched, seeded, takes_flat_rows
from bertie.errors import UserError
from bertie.jobs.finetuning.predict import PredictJob
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.nn.attention.scoring import DotProduct, FusedScorer, ReferenceScorer
from bertie.nn.layout import Layout, Side
from bertie.nn.native.cross_entropy import linear_cross_entropy
from bertie.nn.native.dropout_kernel import drop
from bertie.nn.native.gelu import gated_gelu, linear_gelu
from bertie.nn.products.choice import is_plain
from bertie.nn.visibility import Full
from bertie.train.folder.checkpoint import Checkpoints
from bertie.train.folder.run_folder import begun_precision
from bertie.train.instances import split_rows
from bertie.train.learning.optimizer import AdamWSpec
from bertie.train.learning.precision import precision_on
from bertie.train.loop import take_step

META = torch.device("meta")


@pytest.fixture
def machine_with(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """A machine with so many CUDA devices, or with MPS; under torchrun where there are several processes."""

    def pretend(cuda: int = 0, mps: bool = False, processes: int = 1, number: int = 0) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        for name, value in (("WORLD_SIZE", processes), ("LOCAL_RANK", number)):
            monkeypatch.setenv(name, str(value))

    return pretend


# --- choosing


def test_a_gpu_is_taken_if_there_is_one(machine_with) -> None:  # type: ignore[no-untyped-def]
    machine_with()
    assert choose_device() == choose_device("cpu") == CPU
    machine_with(cuda=1, mps=True)
    assert choose_device() == choose_device("cuda") == torch.device("cuda:0")
    assert choose_device("cpu") == CPU
    machine_with(mps=True)
    assert choose_device() == choose_device("mps") == torch.device("mps")


def test_each_process_has_a_gpu_of_its_own(machine_with) -> None:  # type: ignore[no-untyped-def]
    machine_with(cuda=2, processes=2, number=1)
    assert choose_device() == torch.device("cuda:1")
    machine_with(cuda=1, processes=2, number=1)
    with pytest.raises(UserError, match="process 2 on this machine has no CUDA device: there are 1; start fewer"):
        choose_device()
    machine_with(mps=True, processes=2)
    assert choose_device() == CPU
    with pytest.raises(UserError, match="processes cannot share a run on mps"):
        choose_device("mps")


def test_a_device_that_is_missing_is_one_sentence(machine_with) -> None:  # type: ignore[no-untyped-def]
    machine_with()
    for name in ("cuda", "mps"):
        with pytest.raises(UserError) as caught:
            choose_device(name)
        assert str(caught.value).startswith(f"`device={name}`: ") and "give `device=cpu`" in str(caught.value)
    with pytest.raises(UserError, match="there is no device 'tpu'; choose from auto, cpu, cuda, mps"):
        choose_device("tpu")


def test_a_job_refuses_a_device_before_it_works(machine_with) -> None:  # type: ignore[no-untyped-def]
    machine_with()
    with pytest.raises(UserError, match="`device=cuda`"):
        PredictJob.of(model="no-such-folder", texts=["a"], device="cuda").run()
    with pytest.raises(UserError, match="'tpu'"):
        PredictJob.of(model="no-such-folder", texts=["a"], device="tpu")


def test_a_model_is_loaded_onto_a_device(tmp_path: Path) -> None:
    task, rows = TASKS["classify"]
    Pretrained(new_model(task.fitted(rows)), tokenizer()).save(tmp_path / "model")
    assert bertie.load(tmp_path / "model", device="cpu").device == CPU
    model = bertie.load(tmp_path / "model", device=META)
    assert model.device == META
    with pytest.raises(UserError, match="there is no device 'gpu'"):
        bertie.load(tmp_path / "model", device="gpu")


def test_a_run_keeps_its_precision_on_another_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gpu = torch.device("cuda", 0)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **options: True)
    assert precision_on(gpu, "auto", 64)[0] == "bfloat16"
    assert precision_on(gpu, "auto", 64, begun="float32") == ("float32", "the run began in it")
    assert precision_on(gpu, "bfloat16", 64, begun="float32")[0] == "bfloat16"  # the run refuses it, and says why
    assert precision_on(torch.device("mps"), "auto", 64)[0] == "float32"
    assert precision_on(CPU, "auto", 64, begun="float32") == precision_on(CPU, "auto", 64)
    assert begun_precision(tmp_path) is None
    (tmp_path / "options.json").write_text('{"options": {"precision": "bfloat16"}}')
    assert begun_precision(tmp_path) == "bfloat16"


# --- tensors


def test_lengths_stay_and_values_move() -> None:
    rows = Ragged.of([[5, 6, 7], [], [8]])
    there = rows.to(META)
    assert there.lengths is rows.lengths and there.sizes == rows.sizes
    assert {getattr(there, name).device for name in ("starts", "row_ids", "positions", "lengths_here")} == {META}
    assert there.host is rows and there.layout.positions.tolist() == [0, 1, 2, 0]
    assert there.numbered().host.values.tolist() == [0, 1, 2, 0]
    assert there.with_values(rows.values).positions.device == CPU  # what is known elsewhere is not taken over
    assert rows.to("cpu") is rows and rows.host is rows and rows.layout is rows


def test_a_batch_moves_with_its_kinds_and_knows_where_it_came_from() -> None:
    batch = Batch(
        {
            "tokens": Ragged.of([[5, 6], [7]]),
            "masked": Pointers(torch.tensor([1]), torch.tensor([1, 0]), into="tokens"),
            "label": torch.tensor([0, 1]),
            "texts": Ragged.of([[2], [1]]),
        },
        only="one",
    )
    there = batch.to(META)
    assert batch.to(CPU) is batch and batch.host is batch and there.host is batch and there.to(META) is there
    assert isinstance(there["masked"], Pointers) and there.only == "one"
    assert {name for name in there.fields if there.tensor(name).device == CPU} == {"texts"} <= set(PART_FIELDS)


def test_kernels_for_the_cpu_take_nothing_else() -> None:
    states, here = torch.empty(4, 16, device=META), torch.randn(4, 16)
    targets = torch.zeros(4, dtype=torch.int64)
    with torch.device(META):
        linear = torch.nn.Linear(16, 16)
    assert not is_plain(here, states)
    assert drop(states, 0.1) is None and gated_gelu(states) is None and linear_gelu(linear, states) is None
    assert linear_cross_entropy(states, states, states[:, 0], targets.to(META)) is None
    assert linear_cross_entropy(here, here, here[:, 0], targets.to(META)) is None


def test_numbers_are_fetched_at_once() -> None:
    numbers = [torch.tensor(1.5), torch.tensor(2)]
    assert [one is other for one, other in zip(fetched(numbers), numbers, strict=True)] == [True, True]


# --- random numbers


def test_draws_are_repeated_without_a_trace() -> None:
    torch.manual_seed(1)
    begun = RandomState.now(CPU)
    first = torch.rand(3)
    with begun.again():
        assert torch.rand(3).equal(first)
    second = torch.rand(3)
    with begun.again(keep=True):
        torch.rand(3)
    assert torch.rand(3).equal(second)


def test_weights_are_drawn_as_torch_draws_them_from_a_seed() -> None:
    before = torch.get_rng_state()
    with seeded(7):
        drawn = torch.rand(3)
    assert torch.get_rng_state().equal(before)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        assert torch.rand(3).equal(drawn)


# --- attention over flat rows, as CUDA computes it


def states(total: int, seed: int, width: int = 8) -> Tensor:
    return torch.randn(total, 2, width, generator=torch.Generator().manual_seed(seed)).requires_grad_()


@pytest.mark.parametrize("sizes", [(3, 1, 7, 7), (2, 5, 1, 4)])
def test_flat_rows_give_what_the_reference_gives(sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    rows, keys = (Side(Ragged.of([torch.zeros(size) for size in each]).numbered()) for each in ((3, 1, 7, 7), sizes))
    layout = Layout(rows, keys, Full())
    asked: list[int] = []

    def watched(*given: Any) -> Tensor | None:
        asked.append(1)
        return attend_flat(*given)

    monkeypatch.setattr("bertie.nn.attention.scoring.attend", lambda *given: None)  # our own kernel
    monkeypatch.setattr("bertie.nn.attention.scoring.takes_flat_rows", lambda query: True)
    monkeypatch.setattr("bertie.nn.attention.scoring.attend_flat", watched)
    found = []
    for scorer in (FusedScorer(DotProduct()), ReferenceScorer(DotProduct())):
        given = states(18, 1), states(len(keys.rows.values), 2), states(len(keys.rows.values), 3)
        mixed = scorer(*given, layout)
        mixed.square().sum().backward()
        found.append([mixed.detach(), *(one.grad for one in given)])
    assert asked == [1]
    torch.testing.assert_close(found[0], found[1])


def test_flat_rows_are_for_cuda_alone() -> None:
    assert not any(takes_flat_rows(torch.empty(3, 2, 8, device=device)) for device in (CPU, META))


def test_what_no_kernel_for_flat_rows_does_is_left_to_others() -> None:
    some, empty = (Ragged(torch.zeros(3, 2, 8), torch.tensor(sizes)) for sizes in ([2, 1], [3, 0]))
    given = (some.values,) * 3
    assert attend_flat(given, (some.flat_rows, empty.flat_rows)) is None
    assert attend_flat(given, (some.flat_rows,) * 2, reach=1) is None  # in float32
    half = (some.values.bfloat16(),) * 3
    assert attend_flat(half, (some.flat_rows,) * 2, dropout=0.1, reach=1) is None


def test_near_tokens_go_to_the_kernel_for_windows_in_half_precision() -> None:
    """torch has it for CUDA alone; its shapes are known."""
    rows = Ragged(torch.empty(11, 2, 8, device=META, dtype=torch.bfloat16), torch.tensor([4, 7]))
    mixed = attend_flat((rows.values,) * 3, (rows.flat_rows,) * 2, reach=2)
    assert mixed is not None and mixed.shape == (11, 2, 8) and mixed.dtype == torch.bfloat16


def test_every_tensor_travels_by_the_backend_of_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    assert devices.process_group(CPU) == "gloo" and not chosen
    assert devices.process_group(torch.device("cuda", 1)) == "cpu:gloo,cuda:nccl"
    assert chosen == [torch.device("cuda", 1)]


# --- checkpoints


def test_a_checkpoint_is_reopened_on_another_device(tmp_path: Path) -> None:
    task, rows = TASKS["tag-crf"]
    fitted = task.fitted(rows)
    samples = [sample for values in rows for sample in read(fitted, values).samples]
    model = new_model(fitted)
    optimizer = AdamWSpec().build(model)
    take_step(model, split_rows(samples, 1000), optimizer, 1.0, step=0)
    Checkpoints(tmp_path).save(1, model, optimizer, {})
    there = Model.new(model.recipe, vocabulary=model.vocabulary).to(META)
    there_optimizer = AdamWSpec().build(there)
    restored = Checkpoints(tmp_path).restore(there, there_optimizer)
    assert restored is not None and restored.step == 1
    state = there_optimizer.state_tensors(there)
    assert state.keys() == optimizer.state_tensors(model).keys()
    # An optimizer that is not fused counts its steps on the CPU.
    assert {name.rpartition(":")[2]: tensor.device for name, tensor in state.items()} == {
        "step": CPU,
        "exp_avg": META,
        "exp_avg_sq": META,
    }
