"""What type checkers see of the Python API; `make check` checks it, nothing runs it."""

from pathlib import Path
from typing import assert_type

import nmt

translator = nmt.load("runs/demo", beam_size=4, allowed_classes=["package.module.Class"])
assert_type(translator, nmt.Translator)
assert_type(translator.translate("a"), nmt.Translation)
assert_type(translator.translate("a", 3), list[nmt.Translation])
assert_type(translator.translate(["a", "b"], with_alignment=True), list[nmt.Translation])
assert_type(translator.translate(("a", "b"), n_best=3), list[list[nmt.Translation]])
assert_type(nmt.preprocess("sample", source=["a.en", Path("a.de")]).path, Path)
assert_type(nmt.train(nmt.load_config("sample"), overrides={"train.epochs": 3}).best, float | None)
assert_type(nmt.train(Path("mine.yaml"), overrides=["train.epochs=3"]).model, Path)
assert_type(nmt.evaluate(src="a", ref=["b", "c"]).bleu, float)
assert_type([finding.ok for finding in nmt.check("sample")], list[bool | None])
run = nmt.Run("runs/demo", device="cpu")
assert_type(run.best, float | None)
assert_type(run.evaluate(split="valid"), nmt.ModelEvaluation)
assert_type(run.translator(beam_size=4), nmt.Translator)
assert_type(run.report(output="report.html"), Path)
assert_type(nmt.attention("dot", query_size=8, key_size=8, window="local_p"), nmt.AttentionModule)
