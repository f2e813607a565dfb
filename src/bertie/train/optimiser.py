"""The optimiser: a model enters, AdamW over what of it learns leaves. Biases and norms are not decayed.

Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2017.
"""

from collections.abc import Callable
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from bertie.spec import Spec

NORMS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm)
FUSED_DEVICES = ("cpu", "cuda")


class AdamWSpec(Spec):
    """`rate` is the highest learning rate; the schedule says how much of it a step takes."""

    kind: Literal["adamw"] = "adamw"
    rate: float = Field(default=5e-4, gt=0)
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = Field(default=1e-6, gt=0)
    decay: float = Field(default=0.01, ge=0)
    clip: float = Field(default=1.0, gt=0)  # the largest norm of all gradients together

    def build(
        self, model: nn.Module, factor: Callable[[nn.Parameter], float] = lambda parameter: 1.0
    ) -> torch.optim.AdamW:
        """`factor` is the share of the rate at which a parameter learns."""
        groups: dict[tuple[float, float], list[nn.Parameter]] = {}
        for named, decay in zip(decay_groups(model), (self.decay, 0.0), strict=True):
            for parameter in named.values():
                groups.setdefault((decay, factor(parameter)), []).append(parameter)
        filled = [
            {"params": parameters, "weight_decay": decay, "factor": share}
            for (decay, share), parameters in groups.items()
        ]
        fused = all(one.is_floating_point() and one.device.type in FUSED_DEVICES for one in model.parameters())
        return torch.optim.AdamW(filled, lr=self.rate, betas=self.betas, eps=self.eps, fused=fused)


def decay_groups(model: nn.Module) -> tuple[dict[str, nn.Parameter], dict[str, nn.Parameter]]:
    """Parameters that learn, by name: those to decay, and the biases, norms and single scales that are not.

    A tied parameter is there once, under the first of its names.
    """
    of_norms = {id(own) for part in model.modules() if isinstance(part, NORMS) for own in part.parameters()}
    decayed: dict[str, nn.Parameter] = {}
    plain: dict[str, nn.Parameter] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            bare = parameter.ndim < 2 or name.endswith("bias") or id(parameter) in of_norms
            (plain if bare else decayed)[name] = parameter
    return decayed, plain


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Every group takes its own share of it."""
    for group in optimiser.param_groups:
        group["lr"] = rate * group.get("factor", 1.0)


def clip_gradients(model: nn.Module, largest: float) -> Tensor:
    """Shrinks all gradients alike where their norm is above `largest`; returns the norm that they had."""
    return torch.nn.utils.clip_grad_norm_(model.parameters(), largest)


def state_tensors(model: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimiser remembers, as "parameter:what". Empty before the first step."""
    return {
        f"{name}:{what}": value
        for name, parameter in model.named_parameters()
        for what, value in optimiser.state.get(parameter, {}).items()
    }


def set_state_tensors(model: nn.Module, optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """The inverse of `state_tensors`."""
    parameters = dict(model.named_parameters())
    optimiser.state.clear()
    for key, value in tensors.items():
        name, what = key.rsplit(":", 1)
        optimiser.state[parameters[name]][what] = value.clone()
