"""Output never replaces what is not the program's own, nor what a command or another directory needs."""

import contextlib
import os
import shutil
from pathlib import Path

import processes
import pytest
from conftest import Cli, Project, Refusal, call, errors, train_arguments, tree

from nmt.system.errors import DataError
from nmt.system.outputs import check_output

GOLDEN = Path(__file__).parent.parent / "golden"
DATA = Path("data/prepared/reversal")
RUN = Path("runs/reversal")


@pytest.fixture
def refusal(refusal: Refusal) -> Refusal:
    """As for all tests; what is refused changes nothing."""

    def run(*arguments: object) -> str:
        before = tree()
        line = refusal(*arguments)
        assert tree() == before
        return line

    return run


@pytest.mark.parametrize(
    ("there", "overwrite", "message"),
    [
        ([], False, None),
        (["marker.json", "other.txt"], True, None),
        (["marker.json", "other.txt"], False, "contains an earlier result; add `overwrite=True`"),
        (["thesis.tex"], True, r"contains other files \(no marker\.json\)"),
        (["thesis.tex"], False, r"contains other files \(no marker\.json\)"),
    ],
)
def test_what_a_folder_may_contain(tmp_path: Path, there: list[str], overwrite: bool, message: str | None) -> None:
    for name in there:
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=message) if message else contextlib.nullcontext():
        check_output(tmp_path, "marker.json", overwrite=overwrite)
    assert sorted(path.name for path in tmp_path.iterdir()) == there


def test_a_file_is_not_an_output_folder(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(DataError, match="out: is a file"):
        check_output(tmp_path / "out", "marker.json", overwrite=True)
    check_output(tmp_path / "new" / "deep", "marker.json", overwrite=False)


@pytest.mark.parametrize("outer", [DATA, DATA / "text", RUN, RUN / "best", RUN / "checkpoints", "link"])
@pytest.mark.parametrize("command", ["preprocess", "train"])
def test_no_output_inside_another_directory_of_nmt(
    here: Project, refusal: Refusal, command: str, outer: Path | str
) -> None:
    Path("link").symlink_to(RUN / "best")
    line = refusal(command, "--config", here.config, "--output", Path(outer) / "x")
    assert line.startswith(f"{outer}/x: is inside the ")
    assert line.endswith("; choose another --output")


@pytest.mark.parametrize(
    "command",
    [
        ["preprocess", "--config", "CONFIG", "--output", "loop"],
        ["train", "--config", "CONFIG", "--output", "loop"],
        ["translate", "a b", "--output", "loop"],
        ["translate", "a b", "--model", "loop"],
        ["evaluate", "--json", "loop"],
    ],
)
def test_no_output_at_a_link_to_itself(here: Project, refusal: Refusal, command: list[str]) -> None:
    Path("loop").symlink_to("loop")
    line = refusal(*(here.config if word == "CONFIG" else word for word in command))
    assert line.startswith(("loop", "--json loop"))
    assert "link" in line


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("preprocess CONFIG --output file/a", "file/a: {}--output"),
        ("train CONFIG --output file/a/b", "file/a/b: {}--output"),
        ("export --to hub --output file/a", "file/a: {}--output"),
        ("translate a --output file/a", "--output file/a: {}file"),
        ("evaluate --json file/a/b", "--json file/a/b: {}file"),
    ],
)
def test_no_output_below_a_file(here: Project, refusal: Refusal, command: str, advice: str) -> None:
    Path("file").touch()
    line = refusal(*command.replace("CONFIG", str(here.config)).split())
    assert line == advice.replace("{}", "file is a file, not a folder; choose another ")


@pytest.mark.parametrize("command", ["translate a --output", "evaluate --json", "report --output"])
def test_no_output_file_in_place_of_a_folder(here: Project, refusal: Refusal, command: str) -> None:
    option = command.split()[-1]
    assert refusal(*command.split(), "runs") == f"{option} runs: is a folder; choose another file"


@pytest.mark.parametrize("source", ["d/test.jsonl", "link"])
def test_preprocess_does_not_replace_its_own_source(here: Project, refusal: Refusal, source: str) -> None:
    shutil.copytree(DATA, "d")
    shutil.copy(here.config.with_name("corpus.tsv"), "d/test.jsonl")
    Path("link").symlink_to("d/test.jsonl")
    command = ["preprocess", "--config", here.config, "--source", source, "--output", "d", "--overwrite"]
    assert refusal(*command).startswith(f"data.source 1: {source} would be lost")


def test_files_of_the_same_names_make_no_directory_of_ours(here: Project, cli: Cli) -> None:
    for name in ("data.json", "model.json", "run.json"):
        Path(name).write_text("{}")
    assert cli("preprocess", "--config", here.config, "--output", "new").code == 0


WITHIN_A_RUN = ("best/thesis.txt", "models/update-000000007/x", "checkpoints/old.safetensors")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        *(
            (command, name)
            for command in ("preprocess", "train")
            for name in (".notes", "text/words.txt", "mine.txt", "config.yaml.orig", "README.md", "link")
        ),
        *(("train", name) for name in WITHIN_A_RUN),
    ],
)
def test_overwrite_spares_files_of_the_user(here: Project, refusal: Refusal, command: str, name: str) -> None:
    path = (DATA if command == "preprocess" else RUN) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(here.config.parent) if name == "link" else path.write_text("mine")
    line = refusal(command, "--config", here.config, "--overwrite")
    assert line.startswith(f"{DATA if command == 'preprocess' else RUN}: contains {name}, which nmt did not write; ")


def test_a_restarted_run_spares_them_too(here: Project, refusal: Refusal) -> None:
    """A run without a checkpoint is replaced when it is resumed."""
    for path in ("checkpoints", "best"):
        shutil.rmtree(RUN / path)
    (RUN / "run.json").write_text('{"state": "running"}')
    (RUN / "notes.txt").write_text("mine")
    line = refusal("train", "--config", here.config, "--resume")
    assert line.startswith(f"{RUN}: contains notes.txt, ")


def test_leftovers_of_killed_commands_are_our_own(here: Project, cli: Cli) -> None:
    for name in (".best.earlier", ".best.partial-12", ".best.partial-13-deleted", "models/update-000000007"):
        shutil.copytree(RUN / "best", RUN / name)
    shutil.copytree(RUN / "best", RUN / "models/.update-000000014.partial-7")
    for name in (
        ".run.json.partial-12",
        ".learning_curve.png.partial",
        "checkpoints/.update-000000007.safetensors.partial-0",
        "checkpoints/.tmpa1B2c3",
        ".best.partial-12/.tmpa1B2c3",
        ".best.partial-12/.config.yaml.partial-12",
    ):
        (RUN / name).write_text("")
    assert cli("train", "--config", here.config, "--overwrite", "--set", "train.epochs=1").code in (0, 1)
    assert not list(RUN.rglob(".*"))


def test_a_data_directory_of_an_older_version_is_our_own(here: Project, cli: Cli) -> None:
    shutil.rmtree(DATA)
    shutil.copytree(GOLDEN / "data", DATA)
    assert cli("preprocess", "--config", here.config, "--overwrite").code == 0


def test_a_run_does_not_replace_its_inputs(here: Project, refusal: Refusal) -> None:
    shutil.copytree(DATA, RUN / "data")
    again = ["train", "--config", here.config, "--output", RUN, "--overwrite"]
    line = refusal(*again, "--data", RUN / "data")
    assert line == f"--data: {RUN}/data would be lost when {RUN} is replaced; choose another --output"
    shutil.rmtree(RUN / "data")
    for parent in (RUN, RUN / "best"):
        line = refusal(*again, "--set", f"parent={parent}")
        assert line == f"parent: {parent} would be lost when {RUN} is replaced; choose another --output"


def test_a_run_with_its_data_inside_is_resumed(here: Project, cli: Cli) -> None:
    """Such runs could be begun once."""
    shutil.copytree(DATA, RUN / "data")
    moved = Project(here.root, here.config, RUN / "data", RUN)
    assert cli(*train_arguments(moved, RUN, "train.epochs=8", "--resume")).code == 0


@pytest.fixture
def files(here: Project) -> list[str]:
    """`--src` and `--ref` of a test set, and a file next to it."""
    Path("src").write_text("a b\nc d\n")
    Path("ref").write_text("B A\nD C\n")
    os.link("src", "hard")
    Path("soft").symlink_to("src")
    return ["--src", "src", "--ref", "ref"]


@pytest.mark.parametrize("option", ["--json", "--hypotheses", "--output"])
@pytest.mark.parametrize("name", ["src", "ref", "./ref", "hard", "soft"])
def test_no_command_writes_over_its_input(files: list[str], refusal: Refusal, option: str, name: str) -> None:
    command = (
        ["translate", "--input", name if "ref" in name else "src"] if option == "--output" else ["evaluate", *files]
    )
    line = refusal(*command, option, name)
    assert line == f"{option} {Path(name)}: is read by this command; choose another file"


@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="standard input has no name here")
def test_standard_input_is_an_input_too(files: list[str]) -> None:
    with Path("src").open() as src:
        done = processes.run("translate", "--output", "hard", stdin=src, stdout=None)
    assert done.returncode == 1
    assert errors(done.stderr) == ["nmt: error: --output hard: is read by this command; choose another file"]
    assert Path("src").read_text() == "a b\nc d\n"


def test_two_outputs_are_two_files(files: list[str], refusal: Refusal) -> None:
    for outputs in (["z", "./z"], ["link", "target"]):
        Path("link").unlink(missing_ok=True)
        Path("link").symlink_to("target")
        line = refusal("evaluate", *files, "--json", outputs[0], "--hypotheses", outputs[1])
        assert line.startswith(f"--hypotheses {Path(outputs[1])}: is also given for --json; ")
    line = refusal("translate", "a b", "--output", "z.png", "--attention", "z.png")
    assert line.startswith("--attention z.png: is also given for --output; ")
    assert call("evaluate", *files, "--json", "/dev/null", "--hypotheses", "/dev/null") == 0


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (RUN / "run.json", "run directory"),
        (RUN / "metrics.jsonl", "run directory"),
        (RUN / "checkpoints/x", "run directory"),
        (RUN / "text/x", "run directory"),
        (RUN / "best/model.json", "model directory"),
        (RUN / "best/x", "model directory"),
        (DATA / "data.json", "data directory"),
        (DATA / "x", "data directory"),
    ],
)
def test_output_files_do_not_become_part_of_our_directories(
    files: list[str], refusal: Refusal, name: Path, kind: str
) -> None:
    for command in (["evaluate", "--json"], ["evaluate", *files, "--hypotheses"], ["translate", "a b", "--output"]):
        line = refusal(*command, name)
        assert line.startswith(f"{command[-1]} {name}: is inside the {kind} ")


def test_scores_may_be_in_a_run_and_are_spared(here: Project, cli: Cli, refusal: Refusal) -> None:
    assert cli("evaluate", "--json", RUN / "test.json", "--hypotheses", RUN / "test.txt").code == 0
    line = refusal("train", "--config", here.config, "--overwrite")
    assert line.startswith(f"{RUN}: contains test.json, ")
