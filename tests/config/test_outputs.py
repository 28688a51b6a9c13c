"""Output never replaces what is not the program's own, nor what a command or another directory needs."""

import contextlib
import inspect
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, get_args

import pytest
from conftest import Cli, Project, Refusal, call, train_arguments, tree

import nmt
from nmt.config.outputs import check_output
from nmt.interface import app as command_line
from nmt.system.errors import DataError

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
    assert line.endswith("is a link that points to itself; replace or delete it")


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


def test_files_of_the_same_names_make_no_directory_of_ours(here: Project, cli: Cli, no_pictures: None) -> None:
    for name in ("data.json", "model.json", "run.json"):
        Path(name).write_text("{}")
    assert cli("preprocess", "--config", here.config, "--output", "new").code == 0


INPUTS = {
    *("model", "models", "against", "teacher", "data", "directory", "source", "cell"),
    *("src", "ref", "tgt", "gold", "relations", "input", "dictionary", "keep", "glossary", "text", "key_file"),
}
"""Parameters of commands that are paths to read; every other path is an output."""
ARGUMENTS = {
    "preprocess": "CONFIG",
    "train": "CONFIG",
    "translate": "a",
    "evaluate": "--no-short-inputs --beam-size 1",
    "attention": "a",
    "report": "",
    "compare": "CONFIG --vary train.epochs=1,2",
    "backtranslate": "CONFIG --text text",
    "score": "--src text --tgt other",
    "average": "runs/reversal runs/reversal",
    "export": "--to hub",
}
"""Of each command that writes, what it needs to come to its output."""


def list_outputs() -> list[tuple[str, str]]:
    """Commands with their output options."""
    options = []
    for command in command_line.app.registered_commands:
        assert command.callback
        assert command.name
        for key, parameter in inspect.signature(command.callback).parameters.items():
            kind, info = get_args(parameter.annotation)
            if kind in (Path, Path | None, list[Path] | None) and key not in INPUTS:
                options.append((command.name, info.default))  # its first name
    return options


OUTPUTS = list_outputs()
FOLDERS = {"preprocess", "train", "compare", "backtranslate", "average", "export"}
FILE_OUTPUTS = [pair for pair in OUTPUTS if pair[0] not in FOLDERS]
NOT_EMPTY = "exists and is not empty; choose another file, or replace it with --overwrite"


def make_command(here: Project, name: str, option: str, path: str) -> list[object]:
    """A command with an output, and its inputs as files."""
    Path("text").write_text("A B\n")
    Path("other").write_text("B A\n")
    return [name, *ARGUMENTS[name].replace("CONFIG", str(here.config)).split(), option, path]


def file_name(option: str, name: str) -> str:
    """A name that fits an output option, as pictures and pages have suffixes."""
    if option in ("--picture", "--attention"):
        return "own.png"
    return "own.html" if option == "--output" and name in ("attention", "report") else "own"


def test_every_command_with_an_output_is_tried() -> None:
    assert {name for name, _ in OUTPUTS} == {*ARGUMENTS}
    assert len(FILE_OUTPUTS) >= 10


@pytest.mark.parametrize(("name", "option"), FILE_OUTPUTS)
def test_no_command_replaces_a_file_that_is_not_empty(
    here: Project, refusal: Refusal, cli: Cli, name: str, option: str
) -> None:
    path = file_name(option, name)
    command = make_command(here, name, option, path)
    Path(path).write_text("my own work\n")
    line = refusal(*command)
    more = "; to score the hypotheses in it, give --against own" if option == "--hypotheses" else ""
    assert line == f"{option} {path}: {NOT_EMPTY}{more}"
    Path("link").symlink_to(path)
    if "." not in path:
        assert NOT_EMPTY in refusal(*command[:-1], "link")
    assert cli(*command, "--overwrite").code == 0
    assert b"my own work" not in Path(path).read_bytes()
    Path(path).write_bytes(b"")  # as mktemp makes it
    assert cli(*command).code == 0
    assert Path(path).stat().st_size


@pytest.mark.parametrize(("name", "option"), [pair for pair in OUTPUTS if pair[0] in FOLDERS])
def test_no_command_replaces_a_folder_of_others(here: Project, refusal: Refusal, name: str, option: str) -> None:
    command = make_command(here, name, option, "folder")
    Path("folder").mkdir()
    Path("folder/thesis.tex").write_text("my own work")
    overwrite = ["--overwrite"] if name not in ("compare", "backtranslate") else []
    assert "folder: contains other files (no " in refusal(*command, *overwrite)
    Path("file").write_text("my own work")
    assert refusal(*command[:-1], "file", *overwrite).startswith("file: is a file; give a folder as --output")


@pytest.mark.parametrize(("form", "path"), [("html", "own.html"), ("argos", "own.argosmodel")])
def test_no_export_replaces_a_file_that_is_not_empty(here: Project, refusal: Refusal, form: str, path: str) -> None:
    Path(path).write_text("my own work")
    assert refusal("export", "--to", form, "--output", path) == f"--output {path}: {NOT_EMPTY}"


def test_a_path_with_quotation_marks_is_shown_as_it_is_typed(here: Project, refusal: Refusal) -> None:
    path = 'it\'s "mine" & yours'
    Path(path).write_text("a")
    line = refusal("evaluate", "--hypotheses", path)
    assert shlex.split(line.rpartition("give ")[2]) == ["--against", path]


def test_own_hypotheses_are_scored_as_the_message_says(here: Project, refusal: Refusal, cli: Cli) -> None:
    assert cli("evaluate", "--hypotheses", "own.hyp", "--no-short-inputs").code == 0
    line = refusal("evaluate", "--hypotheses", "own.hyp")
    found = cli("evaluate", "--no-short-inputs", *shlex.split(line.rpartition("give ")[2]))
    assert found.code == 0
    assert "own.hyp" in found.out


def test_a_failure_leaves_the_earlier_files(here: Project, refusal: Refusal) -> None:
    for name in ("own.json", "own.hyp"):
        Path(name).write_text("my own work")
    Path("text").write_text("A B\nB A\n")
    Path("short").write_text("B A\n")
    line = refusal("score", "--src", "text", "--tgt", "short", "--output", "own.hyp", "--overwrite")
    assert line.startswith("short: has 1 lines, fewer than text")
    outputs = ["--json", "own.json", "--hypotheses", "own.hyp", "--overwrite"]
    assert "has 1 lines" in refusal("evaluate", *outputs, "--against", "short")


@pytest.mark.parametrize("option", ["--json", "--hypotheses", "--output"])
@pytest.mark.parametrize("name", ["src", "hard", "soft"])
def test_overwriting_spares_inputs_and_other_outputs(
    files: list[str], refusal: Refusal, option: str, name: str
) -> None:
    command = ["translate", "--input", "src"] if option == "--output" else ["evaluate", *files]
    line = refusal(*command, option, name, "--overwrite")
    assert line == f"{option} {name}: is read by this command; choose another file"
    Path("z").write_text("a")
    if option == "--json":
        line = refusal(*command, "--json", "z", "--references", "z", "--overwrite")
        assert line.startswith("--references z: is also given for --json; ")


def test_python_replaces_no_file_either(here: Project) -> None:
    for name in ("own", "own.html", "own.png"):
        Path(name).write_text("my own work")
    translator = nmt.load()
    Path("in").write_text("a b\n")
    writers: list[Callable[[bool], object]] = [
        lambda overwrite: nmt.evaluate(json_path="own", overwrite=overwrite, short_inputs=False),
        lambda overwrite: nmt.evaluate(hypotheses_path="own", overwrite=overwrite, short_inputs=False),
        lambda overwrite: nmt.translate_file(translator, "in", "own", overwrite=overwrite),
        lambda overwrite: nmt.measure_attention("a b", json_path="own", overwrite=overwrite),
        lambda overwrite: nmt.measure_attention("a b", picture="own.png", overwrite=overwrite),
        lambda overwrite: nmt.explore("a b", output="own.html", overwrite=overwrite),
        lambda overwrite: nmt.explore("a b").write("own.html", overwrite=overwrite),
        lambda overwrite: nmt.report(output="own.html", overwrite=overwrite),
        lambda overwrite: nmt.Run(RUN).report(output="own.html", overwrite=overwrite),
        lambda overwrite: nmt.export(to="html", output="own.html", overwrite=overwrite),
    ]
    before = tree()
    for write in writers:
        with pytest.raises(DataError, match=r"exists and is not empty; .* replace it with `overwrite=True`"):
            write(False)
        assert tree() == before
    for write in writers:
        write(True)


def test_an_unfinished_translation_is_resumed_over_the_file_that_it_replaces(
    here: Project, cli: Cli, refusal: Refusal
) -> None:
    Path("in").write_text("a b\nc d\n")
    command = ["translate", "--input", "in", "--output", "out"]
    assert cli(*command, "--resume").code == 0
    assert NOT_EMPTY in refusal(*command, "--resume")  # it is finished
    Path("out").write_text("earlier\n")
    Path(".out.partial").write_bytes(b"")
    Path(".out.partial.json").write_text("{}")
    assert cli(*command, "--resume").code == 0
    assert Path("out").read_text() == "B A\nD C\n"


@contextlib.contextmanager
def at_descriptor(number: int, file: IO[str]) -> Iterator[None]:
    """Standard input or output of this process is a file, as a shell makes it one."""
    with os.fdopen(os.dup(number)) as before:
        os.dup2(file.fileno(), number)
        try:
            yield
        finally:
            os.dup2(before.fileno(), number)


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="standard output has no name here")
@pytest.mark.parametrize("source", [["a b"], ["--input", "in"]])
def test_standard_output_is_no_file_to_replace(here: Project, source: list[str]) -> None:
    """Whatever the shell has made of it; what it holds already stays."""
    Path("in").write_text("a b\n")
    Path("log").write_text("earlier\n")
    with Path("log").open("a") as log, at_descriptor(1, log):
        assert call("translate", *source, "--output", "/dev/stdout") == 0
    assert Path("log").read_text() == "earlier\nB A\n"


def test_a_picture_may_be_piped(here: Project, cli: Cli) -> None:
    os.mkfifo("own.png")
    with subprocess.Popen(["head", "-c", "8", "own.png"], stdout=subprocess.PIPE) as reader:
        cli("attention", "a b", "--picture", "own.png")
        assert reader.communicate(timeout=60)[0] == b"\x89PNG\r\n\x1a\n"
    assert Path("own.png").is_fifo()


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


def test_leftovers_of_killed_commands_are_our_own(here: Project, cli: Cli, no_pictures: None) -> None:
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


def test_a_data_directory_of_an_older_version_is_our_own(here: Project, cli: Cli, no_pictures: None) -> None:
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
def test_standard_input_is_an_input_too(files: list[str], refusal: Refusal) -> None:
    with Path("src").open() as src, at_descriptor(0, src):
        assert refusal("translate", "--output", "hard") == "--output hard: is read by this command; choose another file"
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
