"""Which cells a comparison has."""

from pathlib import Path
from typing import Any

import pytest

from nmt.comparison.plan import make_trials
from nmt.comparison.trial import check_trial_data, has_trial, write_trial
from nmt.config.comparison import ComparisonSection, parse_varied, read_comparison
from nmt.interface.options import parse_seeds
from nmt.system.errors import ConfigError, DataError
from nmt.system.files import shipped

SHIPPED = sorted(path.stem for path in shipped("configs/comparisons").glob("*.yaml"))


def compare(**values: Any) -> ComparisonSection:
    return ComparisonSection.model_validate({"config": "sample", **values})


def test_all_combinations_are_trained_with_every_seed() -> None:
    vary = {"model.attention.score": ["dot", "general"], "model.attention.dropout": [0.0, 0.1, 0.2]}
    cells = make_trials(compare(vary=vary, seeds=[1, 7], settings={"model.dropout": 0.25}))
    assert len(cells) == 2 * 3 * 2
    assert len({cell.key for cell in cells}) == len(cells)
    assert [cell.name for cell in cells[::2]] == [
        f"attention.score={score}, attention.dropout={dropout}"
        for score in ("dot", "general")
        for dropout in (0.0, 0.1, 0.2)
    ]
    last = cells[-1]
    assert (last.seed, last.config.train.seed, last.config.model.dropout) == (7, 7, 0.25)
    assert (last.config.model.attention.score, last.config.model.attention.dropout) == ("general", 0.2)
    assert last.key == "attention.score-general-attention.dropout-0.2-7"


def test_variants_and_configs_are_in_the_names() -> None:
    variants = [{"name": "A / b", "settings": {"train.epochs": 3}}, {"name": "C"}]
    cells = make_trials(compare(config=["sample", "tatoeba"], variants=variants))
    assert [cell.name for cell in cells] == ["sample, A / b", "sample, C", "tatoeba, A / b", "tatoeba, C"]
    assert [cell.key for cell in cells] == ["sample-a-b-1", "sample-c-1", "tatoeba-a-b-1", "tatoeba-c-1"]
    assert [cell.config.train.epochs for cell in cells[:2]] == [3, make_trials(compare())[0].config.train.epochs]


def test_data_is_shared_by_cells_that_do_not_change_it(tmp_path: Path) -> None:
    paths = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    for path, dropout in zip(paths, (0.1, 0.2), strict=True):
        text = f"extends: sample\nmodel: {{dropout: {dropout}}}\ndata: {{directory: {path.stem}, workers: 1}}\n"
        path.write_text(text, encoding="utf-8")
    cells = make_trials(compare(config=[str(path) for path in paths], vary={"model.attention.dropout": [0.1, 0.2]}))
    assert (len(cells), len({cell.data_name for cell in cells})) == (4, 1)
    text = make_trials(compare(vary={"text.lowercase": [True, False]}))
    assert len({cell.data_name for cell in text}) == 2


def test_a_budget_uses_its_time_up(tmp_path: Path) -> None:
    path = tmp_path / "patient.yaml"
    path.write_text("extends: sample\ntrain: {validation: {patience: 5}}\n", encoding="utf-8")
    config = str(path)
    assert make_trials(compare(config=config))[0].config.train.validation.patience == 5
    assert make_trials(compare(config=config, budget_minutes=1))[0].config.train.validation.patience is None
    wanted = {"train.validation.patience": 2}
    assert make_trials(compare(budget_minutes=1, settings=wanted))[0].config.train.validation.patience == 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"vary": {"model.atention.score": ["dot"]}}, "cell atention.score=dot: .*did you mean attention"),
        ({"vary": {"model.dropout": [0.1, 0.1]}}, "'dropout=0.1' and 'dropout=0.1': would share the folder"),
        ({"variants": [{"name": "a?"}, {"name": "a!"}]}, "'a.' and 'a!': would share the folder a-1"),
        ({"seeds": [1, 1]}, "seeds: 1 is given twice"),
        ({"vary": {"train.seed": [1, 2]}}, "train.seed: .*`seeds`"),
        ({"settings": {"train.seed": 3}}, "train.seed: .*`seeds`"),
        ({"budget_minutes": 1, "vary": {"train.epochs": [1, 2]}}, "train.epochs: has no effect with budget_minutes"),
        ({"budget_minutes": 1, "settings": {"train.max_updates": 3}}, "cell sample: budget_minutes and train.max_upd"),
        ({"config": ["nothing"]}, "cell nothing: nothing: no such config file"),
    ],
)
def test_wrong_comparisons_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_trials(compare(**values))


def test_every_problem_comes_once_with_the_first_cell_that_has_it() -> None:
    vary = {"model.dropout": [0.1, 2.0, 3.0], "train.epochs": [1, 0]}
    with pytest.raises(ConfigError) as caught:
        make_trials(compare(vary=vary, seeds=[1, 2], settings={"model.size": 4}))
    lines = str(caught.value).splitlines()
    assert [line.partition(": should")[0].partition(": unknown")[0] for line in lines] == [
        "cell dropout=0.1, epochs=1: model.size",
        "cell dropout=0.1, epochs=0: train.epochs",
        "cell dropout=2.0, epochs=1: model.dropout",
        "cell dropout=3.0, epochs=1: model.dropout",
    ]


def test_the_cell_that_is_there_must_be_the_same(tmp_path: Path) -> None:
    (cell,) = make_trials(compare())
    assert not has_trial(tmp_path / "cell", cell, "test")
    write_trial(tmp_path / "cell", cell, data="data", data_checksum="abc", split="test")
    assert has_trial(tmp_path / "cell", cell, "test")
    check_trial_data(tmp_path / "cell", "abc")
    with pytest.raises(DataError, match="made with another data directory"):
        check_trial_data(tmp_path / "cell", "abd")
    (other,) = make_trials(compare(settings={"model.dropout": 0.45}))
    with pytest.raises(DataError, match=r"other settings: model.dropout \(.* there, 0.45 here\); choose another"):
        has_trial(tmp_path / "cell", other, "test")
    with pytest.raises(DataError, match=r"split \('test' there, 'valid' here\)"):
        has_trial(tmp_path / "cell", cell, "valid")


def test_keys_with_the_same_end_are_both_set() -> None:
    cells = make_trials(compare(vary={"text.max_length": [50, 60], "decode.max_length": [50, 60]}))
    found = [(cell.config.text.max_length, cell.config.decode.max_length) for cell in cells]
    assert found == [(50, 50), (50, 60), (60, 50), (60, 60)]
    assert cells[1].name == "text.max_length=50, decode.max_length=60"


def test_names_that_folders_cannot_have_are_told_apart() -> None:
    cells = make_trials(compare(variants=[{"name": name} for name in ("加性", "点积", "x" * 79 + "1", "x" * 79 + "2")]))
    assert len({cell.key for cell in cells}) == 4
    assert all(cell.key.isascii() for cell in cells)
    long = [{"name": f"{'long ' * 12}{n}", "settings": {"model.dropout": n / 10}} for n in (1, 2)]
    cells = make_trials(compare(variants=long, vary={"train.optimizer.learning_rate": [0.001, 0.002]}))
    assert len({cell.key for cell in cells}) == 4


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_comparisons_are_valid(name: str) -> None:
    cells = make_trials(read_comparison(name, {}))
    assert len(cells) > 1
    assert len({cell.config.data_directory for cell in cells}) == 1


def test_values_that_vary_are_yaml() -> None:
    lists, windows = "a.d=[1, 2],[3]", "a.e={name: local_m},{name: global}"
    assert parse_varied(["a.b=1,2", " a.c = x, 'y, z' ", lists, windows, "a.f=null,true"]) == {
        **{"a.b": (1, 2), "a.c": ("x", "y, z"), "a.d": ([1, 2], [3]), "a.f": (None, True)},
        "a.e": ({"name": "local_m"}, {"name": "global"}),
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(([setting], "expected section.key=value,value") for setting in ("a.b", "=1,2", "a=")),
        (["a=1"], "single value; use `overrides`"),
        (["a=1,2", "a=3,4"], "given twice"),
        (["a=[1,2"], "not valid YAML"),
        (["a=1]: [2"], "not valid YAML"),
    ],
)
def test_wrong_values_that_vary_are_refused(settings: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_varied(settings)


def test_arguments_replace_and_add_to_what_a_file_says(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "config: sample\nseeds: [4]\nvary: {model.dropout: [0.1, 0.2]}\nbudget_minutes: 2\n", encoding="utf-8"
    )
    found = read_comparison(str(path), {"seeds": [1, 2], "vary": {"train.epochs": (1, 2)}, "budget_minutes": None})
    assert (found.config, found.seeds, found.budget_minutes) == (("sample",), (1, 2), 2)
    assert found.vary == {"model.dropout": (0.1, 0.2), "train.epochs": (1, 2)}


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("confg: sample\n", {}, "mine.yaml: confg: unknown key; did you mean config"),
        ("config: sample\nvary: {model.dropout: 0.1}\n", {}, "mine.yaml: vary.model.dropout: "),
        ("config: sample\nvariants: [{settings: {}}]\n", {}, "mine.yaml: variants.0.name: field required"),
        (
            "extends: sample\ntrain: {epochs: 2}\n",
            {},
            "^mine.yaml is a config, not a comparison; to compare it, use `config='mine.yaml'` `vary=.*KEY=VALUE,",
        ),
        ("model: {}\n", {"vary": {"train.seed": (1, 2)}}, "to compare it, use `config='mine.yaml'`$"),
        ("config: sample\n", {"budget_minutes": -1}, "^budget_minutes: should be greater than 0"),  # not of the file
    ],
)
def test_wrong_files_are_refused(
    text: str, given: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_comparison("mine.yaml", given)


def test_unknown_files_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"mechanism: no such comparison file.*did you mean mechanisms"):
        read_comparison("mechanism", {})
    with pytest.raises(
        ConfigError, match=r"sample.yaml is a config, not a comparison; to compare it, use `config='sam"
    ):
        read_comparison("sample", {})


def test_updates_replace_the_budget_of_a_file(tmp_path: Path) -> None:
    """As the guide recommends for a shared machine; an epoch has at least an update, so none is missing."""
    path = tmp_path / "mine.yaml"
    path.write_text("config: sample\nsettings: {model.dropout: 0.1}\nbudget_minutes: 5\n", encoding="utf-8")
    found = read_comparison(str(path), {"settings": {"train.max_updates": 30}})
    assert found.budget_minutes is None
    (trial,) = make_trials(found)
    train = trial.config.train
    assert (train.max_updates, train.epochs, train.validation.patience) == (30, 30, None)
    assert trial.config.model.dropout == 0.1
    own = read_comparison(str(path), {"settings": {"train.max_updates": 30, "train.epochs": 2}})
    assert make_trials(own)[0].config.train.epochs == 2
    with pytest.raises(ConfigError, match=r"budget_minutes and train\.max_updates both end training"):
        make_trials(read_comparison(str(path), {"settings": {"train.max_updates": 30}, "budget_minutes": 3}))


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", (1, 2, 3)), ("1", (1,)), ("1,2,3", (1, 2, 3)), ("7,", (7,)), ("0,", (0,)), ("4,2", (4, 2))],
)
def test_a_single_number_is_how_many_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["0", "101", "20260101"])
def test_an_impossible_number_of_seeds_may_be_a_seed(text: str) -> None:
    with pytest.raises(ConfigError, match=rf"--seeds {text}: expected how many seeds, .* write --seeds {text},"):
        parse_seeds(text)
