"""What surrounds a release: files of GitHub follow their schemas, and the commands and versions in them exist."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.system.files import PACKAGE

ROOT = PACKAGE.parent
SCHEMAS = {
    "github-workflows": ".github/workflows/*.yml",
    "dependabot": ".github/dependabot.yml",
    "github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "citation-file-format": "CITATION.cff",
    "compose-spec": "docs/service/compose.yaml",
}
"""Schemas that come with check-jsonschema, and the files that follow them."""
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_file_follows_its_schema(schema: str) -> None:
    pytest.importorskip("check_jsonschema")
    files = sorted(ROOT.glob(SCHEMAS[schema]))
    assert files
    kind = ["--force-filetype", "yaml", "--builtin-schema", f"vendor.{schema}"]
    command = [sys.executable, "-m", "check_jsonschema", *kind, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_targets_of_make_exist(path: Path) -> None:
    """So do the files that a workflow names."""
    text = path.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {*re.findall(r"^([\w/.]+):", makefile, re.MULTILINE)}
    called = re.findall(r"^ +- run: make (\w+)", text, re.MULTILINE)
    assert called
    assert {*called} <= targets
    for name in re.findall(r"CONSTRAINTS=([\w/.]+)", text):
        assert name in targets or (ROOT / name).is_file()


def test_the_matrix_begins_with_the_oldest_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    matrix = read(".github/workflows/test.yml")["jobs"]["test"]["strategy"]["matrix"]
    oldest, newest = matrix["include"]
    assert f">={matrix['python'][0]}" == project["requires-python"]
    assert oldest["python"] == matrix["python"][0]
    assert newest["python"] == matrix["python"][-1]
    (torch,) = [name for name in project["dependencies"] if name.startswith("torch>=")]
    version = torch.removeprefix("torch>=").partition(",")[0]
    assert f"TORCH=torch=={version}." in oldest["versions"]


def test_a_tag_is_published_once_its_tests_have_passed() -> None:
    """Only the job that publishes may ask for the identity that the index trusts."""
    workflow = read(".github/workflows/publish.yml")
    jobs = workflow["jobs"]
    assert jobs["build"]["needs"] == "test"
    assert jobs["publish"]["needs"] == "build"
    assert workflow["permissions"] == {"contents": "read"}
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == ["publish"]


def test_the_commit_hook_calls_what_the_checks_are() -> None:
    ((hook,),) = [repository["hooks"] for repository in read(".pre-commit-config.yaml")["repos"]]
    assert (hook["entry"], hook["pass_filenames"]) == ("make check", False)
