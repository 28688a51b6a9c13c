"""Train and compare attention mechanisms on one data directory: a Markdown table of test scores.

Each system is `nmt train --config NAME` with a few overrides; a finished run is not trained again. Test scores are
beam-search BLEU and chrF of `nmt evaluate`; each system is compared with the first one (`none`) by sacreBLEU's paired
bootstrap.

Usage: python scripts/attention_table.py --config tatoeba_small [--output runs/attention] [--only none luong_dot]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from nmt.evaluation.metrics import ScoringRules, compare_systems
from nmt.workflow.configs import load_config
from nmt.workflow.evaluate import read_split

BAHDANAU = ("model.decoder.order=bahdanau", "model.decoder.initial_state=backward")
SYSTEMS = {
    "none": ("model.attention.score=none",),
    "bahdanau_additive": (*BAHDANAU, "model.attention.score=additive"),
    "luong_dot": ("model.attention.score=dot",),
    "luong_general": ("model.attention.score=general",),
    "luong_concat": ("model.attention.score=concat",),
}


def train_and_evaluate(config: str, name: str, output: Path) -> None:
    """Train a system unless its run is finished, and translate the test set with it."""
    run = output / name
    if not (run / "run.json").exists() or json.loads((run / "run.json").read_text())["state"] != "finished":
        overrides = [part for value in SYSTEMS[name] for part in ("--set", value)]
        command = ["train", "--config", config, "--output", str(run), "--overwrite", *overrides]
        subprocess.run([sys.executable, "-m", "nmt", *command], check=True)
    files = ["--json", str(run / "test.json"), "--hypotheses", str(run / "test.txt")]
    subprocess.run([sys.executable, "-m", "nmt", "evaluate", "--model", str(run), *files], check=True)


def main() -> None:
    """Train what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", default="tatoeba_small")
    parser.add_argument("--output", type=Path, default=Path("runs/attention"))
    parser.add_argument("--only", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    arguments = parser.parse_args()
    output: Path = arguments.output
    for name in arguments.only:
        train_and_evaluate(arguments.config, name, output)
    config = load_config(arguments.config)
    examples = read_split(config.data_directory, "test")
    systems = [(name, (output / name / "test.txt").read_text("utf-8").splitlines()) for name in arguments.only]
    rules = ScoringRules.for_text(config.text, config.data.languages[1])
    compared = compare_systems(systems, [example.references for example in examples], rules)["bleu"]
    print("| system | test BLEU | 95% interval | chrF | p against " + systems[0][0] + " | parameters | training |")
    print("|---|---|---|---|---|---|---|")
    for found in compared:
        run = output / found.name
        test, facts, state = (json.loads((run / n).read_text()) for n in ("test.json", "best/model.json", "run.json"))
        p_value = "" if found.p_value is None else f"{found.p_value:.3f}"
        print(
            f"| {found.name} | {found.score:.2f} | {found.mean:.2f} ± {found.confidence:.2f} "
            f"| {test['scores']['chrf']['value']:.2f} | {p_value} | {facts['parameters'] / 1e6:.2f} M "
            f"| {state['training_seconds']:.0f} s, {state['tokens_per_second']:,.0f} tok/s |"
        )
    print(f"\nBLEU {compared[0].signature}; {len(examples):,} sentences, beam {config.decode.beam_size}")


if __name__ == "__main__":
    main()
