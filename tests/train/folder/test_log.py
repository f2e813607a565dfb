"""The log: a line that was cut short costs itself alone, and what a kill undid does not count."""

from pathlib import Path

from bertie.train.folder.log import FILE, Log, read_log, standing_records


def test_a_line_cut_short_is_passed_over(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.write({"event": "step", "step": 1, "loss": 3.0})
    with (tmp_path / FILE).open("a") as file:
        file.write('{"event": "step", "st')
    with Log(tmp_path) as log:
        log.write({"event": "step", "step": 2, "loss": 2.0})
        log.write({"event": "saved", "step": 2})
    assert [record.get("loss") for record in read_log(tmp_path)] == [3.0, 2.0, None]


def test_without_a_log_there_are_no_records(tmp_path: Path) -> None:
    assert list(read_log(tmp_path)) == []


def test_what_a_kill_undid_does_not_stand(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.write({"event": "start", "step": 0})
        for step in (1, 2, 3):
            log.write({"event": "step", "step": step, "loss": 9.0})
        log.write({"event": "resume", "step": 1})
        log.write({"event": "step", "step": 2, "loss": 2.0})
    standing = [(record["event"], record["step"], record.get("loss")) for record in standing_records(tmp_path)]
    assert standing == [("start", 0, None), ("step", 1, 9.0), ("resume", 1, None), ("step", 2, 2.0)]


def test_a_run_that_began_anew_has_one_beginning(tmp_path: Path) -> None:
    """Killed before its first checkpoint."""
    with Log(tmp_path) as log:
        for loss in (9.0, 8.0):
            log.write({"event": "start", "step": 0})
            log.write({"event": "step", "step": 1, "loss": loss})
    assert [record["loss"] for record in standing_records(tmp_path) if record["event"] == "step"] == [8.0]
