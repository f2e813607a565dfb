"""Turns a model into an optimizer over the parameters that learn, from a spec.

Most models train with AdamW (Loshchilov and Hutter, 2017), which does not decay biases and norms. Muon (Jordan et al.,
2024) takes matrices only, so a spec may also be a list of optimizers, each for a group of parameters.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from bertie.devices import CPU, device_of, is_fused
from bertie.errors import SpecError
from bertie.machine import probe
from bertie.spec import Spec

NORMS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm)
STACK = "encoder.stack."  # where the names of the layers' parameters begin

RateFactor = Callable[[nn.Parameter], float]
"""The share of the learning rate at which a parameter learns."""


@dataclass(frozen=True)
class Optimizer:
    """One or several optimizers of torch, each over its own parameters."""

    parts: Sequence[torch.optim.Optimizer]

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return [group for part in self.parts for group in part.param_groups]

    def set_rate(self, factor: float) -> float:
        """Sets all learning rates to this share of the highest; returns the first part's."""
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = group["rate"] * factor * group["factor"]
        return float(self.parts[0].param_groups[0]["rate"] * factor)

    def zero_grad(self) -> None:
        for part in self.parts:
            part.zero_grad()

    def step(self) -> None:
        for part in self.parts:
            part.step()

    def state_tensors(self, model: nn.Module) -> dict[str, Tensor]:
        """The optimizer's state as "parameter:what". Empty before the first step."""
        return {
            f"{name}:{what}": value
            for name, parameter in model.named_parameters()
            for part in self.parts
            for what, value in part.state.get(parameter, {}).items()
        }

    def set_state_tensors(self, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
        """The inverse of `state_tensors`."""
        parameters = dict(model.named_parameters())
        owners = {
            parameter: part for part in self.parts for group in part.param_groups for parameter in group["params"]
        }
        for part in self.parts:
            part.state.clear()
        for key, value in tensors.items():
            name, what = key.rsplit(":", 1)
            parameter = parameters[name]
            own = owners[parameter]
            # Steps are counted beside the weights by a fused optimizer, by others on the CPU.
            away = what != "step" or own.defaults.get("fused")
            own.state[parameter][what] = value.to(parameter.device if away else CPU, copy=True)


class AdamWSpec(Spec):
    """`rate` is the highest learning rate; the schedule decides which share of it a step takes."""

    kind: Literal["adamw"] = "adamw"
    rate: float = Field(default=5e-4, gt=0)
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = Field(default=1e-6, gt=0)
    decay: float = Field(default=0.01, ge=0)

    def build(self, model: nn.Module, factor: RateFactor = lambda parameter: 1.0) -> Optimizer:
        return Optimizer([self.build_part(model, decay_groups(model), factor)])

    def build_part(
        self, model: nn.Module, named: tuple[dict[str, nn.Parameter], dict[str, nn.Parameter]], factor: RateFactor
    ) -> torch.optim.Optimizer:
        """`named` are the parameters to decay and those not to decay."""
        groups: dict[tuple[float, float], list[nn.Parameter]] = {}
        for own, decay in zip(named, (self.decay, 0.0), strict=True):
            for parameter in own.values():
                groups.setdefault((decay, factor(parameter)), []).append(parameter)
        filled = [
            {"params": parameters, "weight_decay": decay, "factor": share, "rate": self.rate}
            for (decay, share), parameters in groups.items()
        ]
        return torch.optim.AdamW(filled, lr=self.rate, betas=self.betas, eps=self.eps, fused=is_fused(model))


class MuonSpec(Spec):
    """For matrices only. Updates are scaled as AdamW's are, so that the same `rate` and `decay` suit both."""

    kind: Literal["muon"] = "muon"
    rate: float = Field(default=5e-4, gt=0)
    momentum: float = Field(default=0.95, ge=0, lt=1)
    decay: float = Field(default=0.01, ge=0)

    def build(self, model: nn.Module, factor: RateFactor = lambda parameter: 1.0) -> Optimizer:
        return Optimizer([self.build_part(model, decay_groups(model), factor)])

    def build_part(
        self, model: nn.Module, named: tuple[dict[str, nn.Parameter], dict[str, nn.Parameter]], factor: RateFactor
    ) -> torch.optim.Optimizer:
        groups: dict[float, list[nn.Parameter]] = {}
        for name, parameter in (named[0] | named[1]).items():
            if parameter.ndim != 2:
                hint = "use it in a group with `parameters='matrices'`, beside an optimizer for the other parameters"
                raise SpecError(f"Muon trains matrices only, and {name} is not one", hint=hint)
            groups.setdefault(factor(parameter), []).append(parameter)
        # Its products are in bfloat16, which ends the process on a few machines.
        if device_of(model) == CPU and not (measured := probe().precisions["bfloat16"]).runs:
            raise SpecError(f"Muon needs bfloat16, which {measured.note} on this machine", hint="use adamw")
        filled = [{"params": parameters, "factor": share, "rate": self.rate} for share, parameters in groups.items()]
        return torch.optim.Muon(
            filled,
            lr=self.rate,
            momentum=self.momentum,
            weight_decay=self.decay,
            adjust_lr_fn="match_rms_adamw",
        )


class ParameterGroup(Spec):
    """`parameters`: "matrices" are the weights of the encoder's layers that are matrices; "all" are all others."""

    parameters: Literal["matrices", "all"]
    optimizer: Annotated[AdamWSpec | MuonSpec, Field(discriminator="kind")]


class GroupedSpec(Spec):
    """Several optimizers: a parameter belongs to the first group that it fits."""

    kind: Literal["grouped"] = "grouped"
    groups: tuple[ParameterGroup, ...] = (
        ParameterGroup(parameters="matrices", optimizer=MuonSpec()),
        ParameterGroup(parameters="all", optimizer=AdamWSpec()),
    )

    @model_validator(mode="after")
    def _groups_cover_everything(self) -> "GroupedSpec":
        if [group.parameters for group in self.groups] not in (["matrices", "all"], ["all"]):
            raise ValueError('groups must be "matrices" and then "all", so that each parameter has one optimizer')
        return self

    def build(self, model: nn.Module, factor: RateFactor = lambda parameter: 1.0) -> Optimizer:
        parts = []
        left = decay_groups(model)
        for group in self.groups:
            own = left
            if group.parameters == "matrices":
                matrices = {name: one for name, one in left[0].items() if name.startswith(STACK) and one.ndim == 2}
                own = matrices, {}
                left = {name: one for name, one in left[0].items() if name not in matrices}, left[1]
            if own[0] or own[1]:
                parts.append(group.optimizer.build_part(model, own, factor))
        return Optimizer(parts)


AnyOptimizer = Annotated[AdamWSpec | MuonSpec | GroupedSpec, Field(discriminator="kind")]


def choose_optimizer(name: Literal["adamw", "muon"], rate: float, decay: float) -> AdamWSpec | GroupedSpec:
    """AdamW for everything; or Muon for the matrices of the layers and AdamW for the rest, at the same rate."""
    adamw = AdamWSpec(rate=rate, decay=decay)
    if name == "adamw":
        return adamw
    matrices = ParameterGroup(parameters="matrices", optimizer=MuonSpec(rate=rate, decay=decay))
    return GroupedSpec(groups=(matrices, ParameterGroup(parameters="all", optimizer=adamw)))


def decay_groups(model: nn.Module) -> tuple[dict[str, nn.Parameter], dict[str, nn.Parameter]]:
    """Parameters that learn, by name: those to decay, and the biases, norms and single scales that are not.

    A tied parameter is there once, under the first of its names.
    """
    norms = [own for part in model.modules() if isinstance(part, NORMS) for own in part.parameters()]
    of_norms = frozenset(map(id, norms))
    decayed: dict[str, nn.Parameter] = {}
    plain: dict[str, nn.Parameter] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            bare = parameter.ndim < 2 or name.endswith("bias") or id(parameter) in of_norms
            (plain if bare else decayed)[name] = parameter
    return decayed, plain
