"""What a run writes for TensorBoard is what its own log says."""

from pathlib import Path

import pytest
from conftest import Project, read_metrics
from training_runs import stop, train

from nmt.system.errors import ConfigError
from nmt.training.board import check_board

events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="needs tensorboard")


def read(run: Path) -> "events.EventAccumulator":
    found = events.EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0, "images": 0, "tensors": 0})
    return found.Reload()


def test_a_resumed_run_shows_what_its_log_has(short_project: Project, run: Path) -> None:
    settings = "train.tensorboard=true", "train.watch=2"
    stop(short_project, run, 7, *settings)
    train(short_project, run, *settings, "--resume")
    lines, board = read_metrics(run), read(run)
    for kind, name in (("train", "loss"), ("valid", "bleu"), ("valid", "loss"), ("train", "learning_rate")):
        logged = [(line["update"], line[name]) for line in lines if line["kind"] == kind and name in line]
        shown = [(event.step, event.value) for event in board.Scalars(f"{kind}/{name}")]
        assert logged
        assert [step for step, _ in shown] == [step for step, _ in logged]
        assert [value for _, value in shown] == pytest.approx([value for _, value in logged], rel=1e-5)
    validations = [line["update"] for line in lines if line["kind"] == "valid"]
    for number in (1, 2):
        images = board.Images(f"attention/{number}")
        assert [image.step for image in images] == validations
        assert images[0].encoded_image_string.startswith(b"\x89PNG")
    sample = board.Tensors("sample/text_summary")[-1].tensor_proto.string_val[0].decode()
    assert sample.startswith("    source: ")
    assert "\n    translation: " in sample
    train(short_project, run, *settings, "train.max_updates=1", "--overwrite")  # its files are those of a run
    assert len(read(run).Scalars("valid/loss")) == 1


def test_without_the_library_the_run_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    check_board(False)
    with pytest.raises(ConfigError, match=r"pip install tensorboard$"):
        check_board(True)
