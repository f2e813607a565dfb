"""The progress line of a run: records of its log enter, a line and some sentences on standard error leave."""

from typing import Any

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from bertie.cli.app import console
from bertie.train.evaluation import PREDICTION_LOSSES
from bertie.train.history import SHARES

Record = dict[str, Any]
SCORES = ("f1", "macro_f1", "exact_match", "matthews", "spearman", "pearson", "mrr")  # of tasks, as papers write them


class RunLine:
    """How far the run is by its budget, whatever that is, and what else there is to say."""

    def __init__(self, shown: bool = True) -> None:
        self.shown = shown
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[told]}"),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal))
        self.task = self.progress.add_task("Training", total=1.0, told="")
        self.resumed = False

    def __enter__(self) -> "RunLine":
        self.progress.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.progress.stop()

    def tell(self, record: Record) -> None:
        step = record["step"]
        match record["event"]:
            case "step":
                if self.resumed:  # what was done before must not count as speed
                    self.progress.reset(self.task, completed=record["progress"])
                    self.resumed = False
                self.progress.update(self.task, completed=record["progress"], told=step_told(record))
            case "resume":
                exact = "" if record["exact"] else f"; not bit for bit as without a stop: {', '.join(record['why'])}"
                self.say(f"going on after step {step:,}{exact}")
                self.resumed = True
            case "note":
                self.say(record["what"])
            case "damaged":
                self.say(f"a checkpoint is damaged and is passed over: {record['checkpoint']}")
            case "evaluation":
                self.say(f"step {step:,}, held out: {figures_told(record)}")
            case "warning":
                self.say(f"step {step:,}: {record['what']}", style="yellow")

    def say(self, what: str, style: str | None = None) -> None:
        if self.shown:
            self.progress.console.print(what, style=style, markup=False, highlight=False, soft_wrap=True)


def step_told(record: Record) -> str:
    told = [f"step {record['step']:,}", f"loss {record['loss']:.3f}", f"{record['tokens_per_second']:,.0f} tokens/s"]
    if "share_of_peak" in record:
        told.append(f"{record['share_of_peak']:.0%} of peak")
    return "  ".join(told)


def figures_told(figures: Record) -> str:
    told = [f"loss {figures['loss']:.4f}"]
    told += [f"{name.replace('_', ' ')} {value:.1%}" for name, value in figures.items() if name.endswith(SHARES)]
    # Of several tasks each has its own: "tag.f1".
    scores = {name: value for name, value in figures.items() if name.rpartition(".")[2] in SCORES}
    told += [f"{name.replace('_', ' ')} {value:.4f}" for name, value in scores.items()]
    if "perplexity" in figures:
        told.append(f"perplexity {figures['perplexity']:.1f}")
    name = next((name for name in PREDICTION_LOSSES if name in figures), None)
    if name is not None and "unigram_loss" in figures:
        told.append(f"{name.replace('_', ' ')} {figures[name]:.4f} against {figures['unigram_loss']:.4f} by frequency")
    return ", ".join(told)
