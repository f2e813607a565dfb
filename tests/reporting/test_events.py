import dataclasses

import pytest

from bertie.reporting.events import Event, ignore, message, progress, warning


def test_an_event_has_a_kind_a_message_and_data() -> None:
    assert message("hello") == Event("message", "hello", {})
    assert warning("careful") == Event("warning", "careful", {})
    ignore(message("hello"))


def test_progress_has_the_fields_of_a_bar_and_any_others() -> None:
    event = progress("counting", 3, None, "documents", loss=0.5)
    assert event.kind == "progress"
    assert event.data == {"stage": "counting", "done": 3, "total": None, "unit": "documents", "loss": 0.5}


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        message("hello").kind = "warning"  # type: ignore[misc]
