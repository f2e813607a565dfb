"""Optimizers: what is decayed, which parameters each one has, and that their state survives."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from pydantic import TypeAdapter
from safetensors.torch import load_file

from bertie.batch import Batch
from bertie.data.corpus import Corpus
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.reporting.events import Event, OnEvent, ignore
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.budget import Steps
from bertie.train.folder.checkpoint import OPTIMIZER
from bertie.train.learning.optimizer import (
    AdamWSpec,
    AnyOptimizer,
    GroupedSpec,
    MuonSpec,
    ParameterGroup,
    decay_groups,
)
from bertie.train.loop import take_step
from bertie.train.pretraining.options import PretrainOptions
from bertie.train.run import pretrain
from bertie.train.stopping import Stopped


def test_biases_and_norms_are_not_decayed_and_tied_weights_come_once(recipe: Callable[..., Recipe]) -> None:
    model = Model.new(recipe())
    decayed, plain = decay_groups(model)
    assert all("norm" in name or name.endswith("bias") for name in plain)
    assert all(name.endswith("weight") and "norm" not in name for name in decayed)
    assert "encoder.embeddings.tables.tokens.weight" in decayed
    parameters = [*decayed.values(), *plain.values()]
    assert len({id(one) for one in parameters}) == len(parameters) == len(list(model.parameters()))
    assert sum("weight" in name and name.startswith("heads.masked-lm") for name in decayed) == 1, "the output is tied"


def test_without_a_gradient_only_the_decayed_shrink(recipe: Callable[..., Recipe]) -> None:
    model = Model.new(recipe())
    torch.nn.init.ones_(model.get_parameter("heads.masked-lm.bias"))
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    optimizer = AdamWSpec(rate=0.1, decay=0.5).build(model)
    for one in model.parameters():
        one.grad = torch.zeros_like(one)
    optimizer.step()
    decayed, _ = decay_groups(model)
    for name, one in model.named_parameters():
        torch.testing.assert_close(one.detach(), before[name] * (0.95 if name in decayed else 1.0))


def test_the_step_is_that_of_the_plain_optimizer(recipe: Callable[..., Recipe]) -> None:
    ours, theirs = Model.new(recipe()), Model.new(recipe())
    spec = AdamWSpec(rate=0.01, decay=0.0)
    fused = spec.build(ours)
    plain = torch.optim.AdamW(theirs.parameters(), lr=0.01, betas=spec.betas, eps=spec.eps, weight_decay=0, fused=False)
    for step in range(3):
        for model, optimizer in ((ours, fused), (theirs, plain)):
            torch.manual_seed(step)
            for one in model.parameters():
                one.grad = torch.randn_like(one)
            optimizer.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-6, rtol=1e-5)


def test_what_was_frozen_is_not_the_optimizers(recipe: Callable[..., Recipe]) -> None:
    model = Model.new(recipe())
    model.encoder.requires_grad_(False)
    names = {name for group in decay_groups(model) for name in group}
    assert names and not any(name.startswith("encoder.") for name in names)


def test_state_goes_out_and_in(recipe: Callable[..., Recipe]) -> None:
    model, other = Model.new(recipe()), Model.new(recipe())
    optimizer, second = AdamWSpec().build(model), AdamWSpec().build(other)
    assert optimizer.state_tensors(model) == {}
    for one in model.parameters():
        one.grad = torch.ones_like(one)
    optimizer.step()
    kept = optimizer.state_tensors(model)
    assert {key.rsplit(":", 1)[1] for key in kept} == {"step", "exp_avg", "exp_avg_sq"}
    second.set_state_tensors(other, kept)
    again = second.state_tensors(other)
    assert kept.keys() == again.keys()
    assert all(torch.equal(kept[key], again[key]) and kept[key] is not again[key] for key in kept)


def test_clipping_is_by_the_norm_of_all(
    recipe: Callable[..., Recipe], draw_batches: Callable[..., list[Batch]]
) -> None:
    model = Model.new(recipe())
    result = take_step(model, draw_batches(model, [[9, 14]]), AdamWSpec().build(model), 1.0, step=0, clip=0.01)
    norms = torch.stack([one.grad.norm() for one in model.parameters() if one.grad is not None])
    assert float(norms.norm()) == pytest.approx(0.01, rel=1e-4)
    assert result.norm > 0.1


# --- several optimizers


def test_muon_has_the_matrices_of_the_layers_and_adamw_all_else(recipe: Callable[..., Recipe]) -> None:
    model = Model.new(recipe())
    muon, adamw = GroupedSpec().build(model).parts
    names = {parameter: name for name, parameter in model.named_parameters()}
    own = {names[one] for group in muon.param_groups for one in group["params"]}
    rest = {names[one] for group in adamw.param_groups for one in group["params"]}
    assert isinstance(muon, torch.optim.Muon) and isinstance(adamw, torch.optim.AdamW)
    assert own and own | rest == set(names.values()) and not own & rest
    assert own == {
        name for name, one in model.named_parameters() if name.startswith("encoder.stack.") and one.ndim == 2
    }


def test_all_parts_take_their_share_of_the_rate(recipe: Callable[..., Recipe]) -> None:
    groups = (
        ParameterGroup(parameters="matrices", optimizer=MuonSpec(rate=0.02)),
        ParameterGroup(parameters="all", optimizer=AdamWSpec(rate=0.001)),
    )
    optimizer = GroupedSpec(groups=groups).build(Model.new(recipe()))
    assert optimizer.set_rate(0.5) == 0.01
    rates = {type(part): {group["lr"] for group in part.param_groups} for part in optimizer.parts}
    assert rates == {torch.optim.Muon: {0.01}, torch.optim.AdamW: {0.0005}}


def test_an_optimizer_for_everything_may_be_a_single_group(recipe: Callable[..., Recipe]) -> None:
    """With the same bits as without a group."""
    one, other = Model.new(recipe()), Model.new(recipe())
    spec = AdamWSpec(rate=0.01)
    grouped = GroupedSpec(groups=(ParameterGroup(parameters="all", optimizer=spec),))
    for model, optimizer in ((one, spec.build(one)), (other, grouped.build(other))):
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    assert all(map(torch.equal, one.parameters(), other.parameters()))


def test_muon_alone_is_refused_and_so_are_groups_that_leave_something_out(recipe: Callable[..., Recipe]) -> None:
    with pytest.raises(SpecError, match="Muon trains matrices only"):
        MuonSpec().build(Model.new(recipe()))
    with pytest.raises(SpecError, match='groups must be "matrices" and then "all"'):
        GroupedSpec.parse({"groups": [{"parameters": "matrices", "optimizer": {"kind": "muon"}}]})


def test_every_kind_is_one_of_the_union() -> None:
    for spec in (AdamWSpec(rate=0.3), MuonSpec(momentum=0.5), GroupedSpec()):
        assert TypeAdapter(AnyOptimizer).validate_json(spec.to_json()) == spec


def test_a_run_with_both_resumes_exactly(
    make_corpus: Callable[..., Corpus], tokenizer: Tokenizer, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    corpus = make_corpus(tmp_path / "corpus", 40)
    options = PretrainOptions(
        budget=Steps(steps=6), length=16, batch_tokens=128, save_every=2, held_out=0, optimizer=GroupedSpec()
    )

    def train(folder: str, on_event: OnEvent = ignore) -> bytes:
        model = Model.new(recipe(dropout=0.1), 1)
        pretrain(tmp_path / folder, model, corpus, tokenizer, options, on_event=on_event)
        return (tmp_path / folder / "model" / "model.safetensors").read_bytes()

    def stop(event: Event) -> None:
        if event.kind == "step" and event.data["step"] == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    whole = train("whole")
    with pytest.raises(Stopped):
        train("stopped", stop)
    kept = load_file(tmp_path / "stopped" / "checkpoints" / "step-00000003" / OPTIMIZER)
    assert {key.rsplit(":", 1)[1] for key in kept} == {"momentum_buffer", "step", "exp_avg", "exp_avg_sq"}
    assert train("stopped") == whole
