"""A folder for a model hub: the header of its card, and that it is a model directory still."""

import json
from pathlib import Path

import yaml
from conftest import Project

import nmt


def test_the_folder_is_read_back_and_says_what_it_is(project: Project, tmp_path: Path) -> None:
    output = nmt.export(project.run, to="hub", output=tmp_path / "hub")
    lines = ["a b c", "h g f e", ""]
    expected, found = ([each.text for each in nmt.load(path).translate(lines)] for path in (project.run, output))
    assert found == expected
    assert any(found)

    _, header, card = (output / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    described = yaml.safe_load(header)
    metadata = json.loads((project.run / "best" / "model.json").read_text(encoding="utf-8"))
    languages = [metadata["src_language"], metadata["tgt_language"]]
    assert described["language"] == languages
    assert described["library_name"] == "nmt"
    assert described["pipeline_tag"] == "translation"
    (model,) = described["model-index"]
    (result,) = model["results"]
    assert result["task"]["type"] == "translation"
    assert result["dataset"]["split"] == "validation"
    scores = {metric["type"]: (metric["value"], metric["args"]["signature"]) for metric in result["metrics"]}
    assert scores == {
        name: (round(metadata["scores"][name], 2), metadata["signatures"][name]) for name in ("bleu", "chrf")
    }
    assert card == (project.run / "best" / "README.md").read_text(encoding="utf-8")
    summary = json.loads((output / "config.json").read_text(encoding="utf-8"))
    assert (summary["library_name"], summary["parameters"]) == ("nmt", metadata["parameters"])
    assert not list(output.rglob("*.pt")) + list(output.rglob("*.bin")) + list(output.rglob("*.pkl"))  # no pickle
