"""An encoder that runs once per batch: objectives, or the loss and the outputs of a task, share its states."""

from typing import Any

from torch import Tensor

from bertie.batch import Batch, Ragged
from bertie.devices import CPU
from bertie.nn.encoder import Encoded, Encoder
from bertie.nn.memory import Memory
from bertie.spec import Spec


class SharedPass:
    """Wraps the encoder during one step: called again for the same batch in the same way, it returns the same result.
    Of the step's own batch, whose rows continue those of `memory`, it computes only the last states at `positions`.

    In evaluation, batches of the same tensors are the same batch. In training they are not: each has its own dropout.
    """

    def __init__(self, encoder: Encoder, batch: Batch, positions: Tensor | None, memory: Memory | None = None):
        self._encoder, self._batch = encoder, batch
        self._own = {"positions": positions, "memory": memory}
        self._answers: list[tuple[Batch, dict[str, Any], Encoded]] = []

    def __call__(self, batch: Batch, **options: Any) -> Encoded:
        options = {**(self._own if batch is self._batch else {}), **options}
        for known_batch, known_options, answer in self._answers:
            if _same_batch(known_batch, batch, self._encoder.training) and _same(known_options, options):
                return answer
        answer = self._encoder(batch, **options)
        self._answers.append((batch, options, answer))
        return answer

    @property
    def memory_after(self) -> Memory | None:
        """What the encoder keeps of the step's own batch, if it has run."""
        return next((answer.memory for batch, _, answer in self._answers if batch is self._batch), None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)


def _same_batch(known: Batch, given: Batch, training: bool) -> bool:
    if known is given or training or known.fields.keys() != given.fields.keys():
        return known is given
    pairs = ((known.fields[name], value) for name, value in given.fields.items())
    return all(
        one is other or (isinstance(one, Ragged) and isinstance(other, Ragged) and _same_rows(one, other))
        for one, other in pairs
    )


def _same_rows(one: Ragged, other: Ragged) -> bool:
    return one.values is other.values and one.lengths is other.lengths


def _same(known: dict[str, Any], given: dict[str, Any]) -> bool:
    """Compares options: frozen values and positions may be equal; anything else must be the same object. Elsewhere
    than on the CPU also positions: a device is not asked for their numbers."""
    return known.keys() == given.keys() and all(
        known[name] is value
        or (isinstance(value, Spec) and known[name] == value)
        or (_are_here(value, known[name]) and value.equal(known[name]))
        for name, value in given.items()
    )


def _are_here(*values: Any) -> bool:
    return all(isinstance(value, Tensor) and value.device == CPU for value in values)
