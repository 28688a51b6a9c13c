"""Models and results do not depend on what the program around has set in torch."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from conftest import Project, assert_same_tensors, tree, without_pictures
from safetensors.torch import load_file

import nmt
from nmt.system.surroundings import plain_torch
from nmt.training import readiness


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
        assert torch.get_default_dtype() == dtype  # which stays that of the program
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def default_device(device: str) -> Iterator[None]:
    torch.set_default_device(device)
    try:
        yield
        assert torch.get_default_device().type == device
    finally:
        torch.set_default_device(None)


Surroundings = Callable[[], contextlib.AbstractContextManager[object]]
SURROUNDINGS: dict[str, Surroundings] = {
    "float64": lambda: default_dtype(torch.float64),
    "bfloat16": lambda: default_dtype(torch.bfloat16),
    "meta": lambda: default_device("meta"),
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "no gradients": torch.no_grad,
    "inference": torch.inference_mode,
}
in_all = pytest.mark.parametrize("surroundings", SURROUNDINGS.values(), ids=SURROUNDINGS)
SOURCES = ["a b c", "h g f e", "c"]


def results(project: Project) -> tuple[object, ...]:
    """Translations, probabilities and alignments of a model that is loaded now."""
    translator = nmt.load(project.run)
    translations = translator.translate(SOURCES, with_alignment=True)
    alignments = [one.alignment.tolist() for one in translations if one.alignment is not None]
    begun = translator.complete(SOURCES, ["C", "E", ""], n_best=2)
    scored = translator.score(SOURCES, ["C B A", "E F", ""])
    return (
        [one.text for one in translations],
        alignments,
        *([(one.text, one.log_prob) for one in ranked] for ranked in [*begun, scored]),
    )


@pytest.fixture(scope="module")
def expected_results(project: Project) -> tuple[object, ...]:
    """Those in torch's own surroundings."""
    return results(project)


@in_all
def test_translations_are_the_same(
    surroundings: Surroundings, project: Project, expected_results: tuple[object, ...]
) -> None:
    assert len(expected_results[1]) == len(SOURCES)  # type: ignore[arg-type]
    with surroundings():
        found = results(project)
    assert found == expected_results


def export_and_evaluate(project: Project, output: Path) -> tuple[float, dict[str, bytes]]:
    """BLEU of the test set, and all files of exports and hypotheses."""
    output.mkdir()
    nmt.export(project.run, to="html", output=output / "page.html")
    nmt.export(project.run, to="hub", output=output / "hub")
    bleu = nmt.evaluate(project.run, short_inputs=False, hypotheses_path=output / "hypotheses.txt").bleu
    return bleu, tree(output)


@pytest.fixture(scope="module")
def expected_files(project: Project, tmp_path_factory: pytest.TempPathFactory) -> tuple[float, dict[str, bytes]]:
    """Those in torch's own surroundings."""
    with without_pictures():
        return export_and_evaluate(project, tmp_path_factory.mktemp("files") / "here")


@in_all
def test_scores_and_exports_are_the_same(
    surroundings: Surroundings,
    project: Project,
    expected_files: tuple[float, dict[str, bytes]],
    tmp_path: Path,
    no_pictures: None,
) -> None:
    with surroundings():
        assert export_and_evaluate(project, tmp_path / "there") == expected_files


def train(project: Project, output: Path) -> Path:
    """The weights' file of a short run of all that is random."""
    settings = {"train.max_updates": 9, "train.epochs": 1}
    run = nmt.train(project.config, data=project.data, output=output, overrides=settings)
    return run.path / "best/model.safetensors"


@pytest.fixture(scope="module")
def trained_weights(random_project: Project, tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """Those of a run in torch's own surroundings."""
    with without_pictures():
        return load_file(train(random_project, tmp_path_factory.mktemp("here") / "run"))


@in_all
def test_training_is_the_same(
    surroundings: Surroundings,
    random_project: Project,
    trained_weights: dict[str, torch.Tensor],
    tmp_path: Path,
    no_pictures: None,
) -> None:
    with surroundings():
        found = train(random_project, tmp_path / "there")
    assert_same_tensors(load_file(found), trained_weights)


@pytest.fixture
def quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small model overfits few pairs in few updates at a high learning rate."""
    monkeypatch.setattr(readiness, "OVERFIT_PAIRS", 8)
    monkeypatch.setattr(readiness, "OVERFIT_RATE", 0.1)
    monkeypatch.setattr(readiness, "TIMED_UPDATES", 2)


@in_all
def test_checks_find_nothing_wrong(surroundings: Surroundings, random_project: Project, quick_checks: None) -> None:
    with surroundings():
        findings = list(nmt.check(random_project.config, data=random_project.data))
    assert all(finding.ok is not False for finding in findings)
    assert {finding.name for finding in findings if finding.ok} >= {"one batch overfits", "decoding", "first updates"}


def test_threads_share_the_default() -> None:
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with plain_torch():
            inside.set()
            leave.wait(60)

    with default_dtype(torch.float64):
        thread = threading.Thread(target=stay)
        thread.start()
        assert inside.wait(60)
        with plain_torch():
            assert torch.zeros(1).dtype == torch.float32
        assert torch.get_default_dtype() == torch.float32  # another thread still needs it
        leave.set()
        thread.join(60)
        assert torch.get_default_dtype() == torch.float64
