"""Opens the model of a job on the device that the job asks for."""

from pathlib import Path
from typing import Any

from bertie.jobs.job import Job
from bertie.models.pretrained import Pretrained, load


def open_model(model: Any, job: Job) -> Pretrained:
    """Loads a folder onto the job's `device`. A model that is loaded already is moved only if a device was given."""
    device: str = job.device  # type: ignore[attr-defined]
    if isinstance(model, str | Path):
        return load(model, device=device)
    found: Pretrained = model.to(device) if "device" in job.model_fields_set else model
    return found
