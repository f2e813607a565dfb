"""Running the stages: a plan enters; each stage is told in a sentence and run, and the time that it took is kept."""

import json
import shlex
import time
from collections.abc import Callable, Sequence

from bertie.data.manifest import write_whole
from bertie.errors import SpecError
from bertie.quickstart.plan import Place, Plan
from bertie.quickstart.stages import Say, Stage, stages

Run = Callable[[Sequence[str]], None]  # a command of bertie, in words


def run_stages(place: Place, plan: Plan, run: Run, say: Say, until: str | None = None) -> None:
    """What is over is passed by. `until` names the last stage to run."""
    known = stages(place, plan)
    if until is not None and until not in (names := [stage.name for stage in known]):
        raise SpecError(f"beginning with real weights has no stage {until!r}", hint=f"it has {', '.join(names)}")
    for number, stage in enumerate(known, 1):
        say(f"\nStage {number} of {len(known)}, {stage.name}. {stage.does}")
        if stage.leaves.exists():
            say("It was done before.")
        else:
            run_stage(stage, place, plan, run, say)
        if stage.name == until:
            return


def run_stage(stage: Stage, place: Place, plan: Plan, run: Run, say: Say) -> None:
    begun = time.monotonic()
    own = ["quickstart", "--until", stage.name, *plan.words, "--out", str(place.folder)]
    if stage.words is None:
        say(told(own))
    try:
        if reason := stage.prepare(say):
            say(f"It is left out: {reason}.")
            return
        if stage.words is not None:
            words = stage.words()
            say(told(words))
            run(words)
    finally:
        seconds = time.monotonic() - begun
        keep_time(place, stage.name, seconds)
    say(f"It took {seconds:.0f} seconds.")


def keep_time(place: Place, stage: str, seconds: float) -> None:
    """What it took in all sittings; one that was killed is not in it."""
    times = read_times(place)
    times[stage] = round(times.get(stage, 0.0) + seconds, 1)
    write_whole(place / "times.json", json.dumps(times).encode())


def told(words: Sequence[str]) -> str:
    return f"$ bertie {shlex.join(words)}"


def read_times(place: Place) -> dict[str, float]:
    """Seconds of the stages that were begun."""
    file = place / "times.json"
    return json.loads(file.read_bytes()) if file.exists() else {}
