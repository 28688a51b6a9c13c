import json
import os
from pathlib import Path

import pytest
import torch
from covering import covering
from pairs import batch_of
from small_models import randomize

from nmt.config import AttentionSection, Config, DecodeSection
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq
from nmt.models.storage import load_model, read_weights, save_model
from nmt.search.searcher import ModelSearcher
from nmt.system.errors import CheckpointError, NmtError
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import Vocabulary

WORDS = ("the", "a", "cat", "dog", "sat")
METADATA = {"update": 12, "epoch": 3, "scores": {"bleu": 1.5}}


def make_config(tying: str = "none", attention: AttentionSection | None = None, **decoder: object) -> Config:
    return Config(
        name="small",
        text={"tokenizer": "whitespace", "subword": {"joint": True}, "vocabulary": {"joint": True}},
        model={
            "embedding_size": 3,
            "tying": tying,
            "encoder": {"hidden_size": 2},
            "decoder": {"hidden_size": 4, **decoder},
            "attention": attention or AttentionSection(),
        },
    )


def make_text(folder: Path, words: tuple[str, ...] = WORDS) -> Path:
    folder.mkdir()
    vocabulary = Vocabulary(words)
    TextProcessor(WhitespaceTokenizer(), WhitespaceTokenizer(), vocabulary, vocabulary).save(folder)
    return folder


def make_model(config: Config, seed: int = 0) -> Seq2Seq:
    torch.manual_seed(seed)
    return build_model(config.model, 4 + len(WORDS), 4 + len(WORDS))


def logits_of(model: Seq2Seq) -> torch.Tensor:
    batch = batch_of([[4, 5, 6], [8]], [[4], [5, 6]])
    with torch.no_grad():
        return model.decoder.output(model.eval().readouts(batch)[0])


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    config = make_config()
    save_model(tmp_path / "model", config, make_model(config), make_text(tmp_path / "text"), METADATA)
    return tmp_path / "model"


ATTENTIONS = {
    "general": AttentionSection(),
    "location": AttentionSection(score="location", options={"max_length": 3}),
    "cosine": AttentionSection(score="cosine", window={"name": "local_p", "radius": 1}),
    "coverage": AttentionSection(score="additive", past={"name": "coverage", "loss_weight": 1.0}),
    "concat": AttentionSection(score="concat", past={"name": "location", "filters": 2, "radius": 1}, dropout=0.5),
    "heads": AttentionSection(score="scaled_dot", heads=2, head_size=3, window={"name": "local_m", "radius": 2}),
    "hard": AttentionSection(window={"name": "hard"}, normalizer={"name": "entmax15", "temperature": 0.5}),
}
DECODERS = [{}, {"order": "bahdanau", "num_layers": 2}, {"cell": "gru", "input_feeding": True}]


@covering("tying, decoder, attention", ["none", "target", "all"], DECODERS, list(ATTENTIONS))
def test_a_loaded_model_gives_identical_logits_and_translations(
    tmp_path: Path, tying: str, decoder: dict[str, object], attention: str
) -> None:
    config = make_config(tying, ATTENTIONS[attention], **decoder)
    model = randomize(make_model(config)).float().eval()
    save_model(tmp_path / "model", config, model, make_text(tmp_path / "text"), METADATA)
    torch.manual_seed(99)
    loaded = load_model(tmp_path / "model")
    assert torch.equal(logits_of(loaded.model), logits_of(model))
    options, sources = DecodeSection(beam_size=3, max_length=8), [[4, 5, 6, 7], [8]]
    translations = [ModelSearcher([one], options).search(sources, n_best=3) for one in (loaded.model, model)]
    assert translations[0] == translations[1]
    assert loaded.config == config
    assert loaded.path == tmp_path / "model"
    assert loaded.src_vocabulary == loaded.tgt_vocabulary == Vocabulary(WORDS)
    assert {key: loaded.metadata[key] for key in METADATA} == METADATA
    assert loaded.metadata["format_version"] == 1
    assert loaded.metadata["parameters"] == sum(p.numel() for p in model.parameters())
    assert not loaded.model.training
    assert (loaded.model.decoder.output.weight is loaded.model.decoder.embedding.weight) == (tying != "none")
    assert (loaded.model.encoder.embedding.weight is loaded.model.decoder.embedding.weight) == (tying == "all")


def test_saving_leaves_the_model_as_it_is(saved: Path, tmp_path: Path) -> None:
    model = load_model(saved).model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    save_model(tmp_path / "again", make_config(), model, tmp_path / "text", {})
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(logits_of(load_model(tmp_path / "again").model), logits_of(model))


@pytest.mark.parametrize("tying", ["none", "target", "all"])
def test_weights_that_are_parts_of_one_piece_of_memory_are_stored(tying: str, tmp_path: Path) -> None:
    """cuDNN keeps the weights of a recurrent layer so."""
    config = make_config(tying, cell="gru", hidden_size=3)
    model = make_model(config)
    expected = {name: weights.clone() for name, weights in model.state_dict().items()}
    for layer in (module for module in model.modules() if isinstance(module, torch.nn.RNNBase)):
        parts = list(layer.parameters())
        whole = torch.cat([part.detach().flatten() for part in parts])
        for part, piece in zip(parts, whole.split([part.numel() for part in parts]), strict=True):
            part.data = piece.view(part.shape)
    save_model(tmp_path / "model", config, model, make_text(tmp_path / "text"), METADATA)
    stored = load_model(tmp_path / "model").model.state_dict()
    assert stored.keys() == expected.keys()
    assert all(torch.equal(stored[name], weights) for name, weights in expected.items())


def test_nothing_in_a_model_directory_is_a_pickle(saved: Path) -> None:
    files = sorted(path for path in saved.rglob("*") if path.is_file())
    assert {path.suffix for path in files} == {".json", ".md", ".yaml", ".safetensors"}
    for path in files:
        content = path.read_bytes()
        assert not content.startswith((b"\x80", b"PK")), path
        if path.suffix == ".json":
            json.loads(content)
    header = (saved / "model.safetensors").read_bytes()
    size = int.from_bytes(header[:8], "little")
    assert "decoder.output.weight" in json.loads(header[8 : 8 + size])


def test_a_copied_directory_is_enough(saved: Path, tmp_path: Path) -> None:
    expected = logits_of(load_model(saved).model)
    elsewhere = tmp_path / "else where" / "model"
    elsewhere.parent.mkdir()
    saved.rename(elsewhere)
    for path in (tmp_path / "text").iterdir():
        path.unlink()
    assert torch.equal(logits_of(load_model(elsewhere).model), expected)


def test_vocabularies_of_a_model_are_read_once(saved: Path) -> None:
    found = load_model(saved)
    for path in (saved / "text").glob("*.vocabulary.json"):
        path.unlink()
    processor = found.load_processor()
    assert processor.src_vocabulary == processor.tgt_vocabulary == Vocabulary(WORDS)


def refusal(directory: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_model(directory)
    message = str(caught.value)
    assert "\n" not in message
    assert str(directory) in message
    return message


def test_a_directory_that_is_no_model(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "nowhere")
    assert "not a model directory" in refusal(tmp_path)


OTHER = b"\x80\x04not safetensors at all" * 20


@pytest.mark.parametrize("content", [0, 5, 100, 0.5, 0.999, OTHER, "more"])
def test_damaged_weights(saved: Path, content: float | bytes | str) -> None:
    """Only a part is left, something else is there, or something follows."""
    path = saved / "model.safetensors"
    whole = path.read_bytes()
    if content == "more":
        path.write_bytes(whole + b"\0")
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_bytes(whole[: content if isinstance(content, int) else int(content * len(whole))])
    message = refusal(saved)
    assert "model.safetensors" in message
    assert "damaged or truncated" in message


@pytest.mark.parametrize("content", ["name: [\n", "nam: x\n"])
def test_a_config_that_cannot_be_used_is_named(saved: Path, content: str) -> None:
    (saved / "config.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(NmtError) as caught:
        load_model(saved)
    assert str(saved / "config.yaml") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("words", [WORDS[:-1], (*WORDS, "mat")])
def test_a_vocabulary_that_does_not_fit(saved: Path, words: tuple[str, ...]) -> None:
    (saved / "text" / "tgt.vocabulary.json").write_text(json.dumps(words), encoding="utf-8")
    message = refusal(saved)
    assert "do not match" in message
    assert "[9, " in message
    assert f"[{4 + len(words)}, " in message


def test_text_much_larger_than_the_weights_is_refused(saved: Path) -> None:
    path = saved / "text/src.vocabulary.json"
    blanks = 2**20 + (saved / "model.safetensors").stat().st_size // 4 - path.stat().st_size
    with path.open("a", encoding="utf-8") as file:
        file.write(" " * blanks)
    assert load_model(saved).src_vocabulary == Vocabulary(WORDS)
    with path.open("a", encoding="utf-8") as file:
        file.write(" ")
    with pytest.raises(CheckpointError, match=r"src\.vocabulary\.json: has 1,\d+,\d+ bytes, more than the limit of"):
        load_model(saved)


def test_weights_of_another_kind_of_model_do_not_fit(saved: Path) -> None:
    other = make_model(make_config(order="bahdanau"))
    with pytest.raises(CheckpointError, match="do not match") as caught:
        read_weights(other, saved / "model.safetensors")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", [0, 2, None, "1"])
def test_another_format_version(saved: Path, version: object) -> None:
    metadata = json.loads((saved / "model.json").read_text(encoding="utf-8"))
    (saved / "model.json").write_text(json.dumps({**metadata, "format_version": version}), encoding="utf-8")
    message = refusal(saved)
    assert f"format {version!r}" in message
    assert "reads 1" in message


def test_a_newer_model_replaces_an_older_one(saved: Path, tmp_path: Path) -> None:
    newer = make_model(make_config(), seed=1)
    (saved / "left over").write_text("", encoding="utf-8")
    save_model(saved, make_config(), newer, tmp_path / "text", {"update": 13})
    loaded = load_model(saved)
    assert loaded.metadata["update"] == 13
    assert torch.equal(logits_of(loaded.model), logits_of(newer))
    assert not (saved / "left over").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "text"]


def test_a_model_is_on_the_disk_before_it_replaces_an_older_one(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, synchronise = saved.stat().st_ino, os.fsync
    on_disk: set[int] = set()

    def record(file: int) -> None:
        synchronise(file)
        if saved.stat().st_ino == older:
            on_disk.add(os.fstat(file).st_ino)

    monkeypatch.setattr(os, "fsync", record)
    save_model(saved, make_config(), make_model(make_config(), seed=1), tmp_path / "text", METADATA)
    assert saved.stat().st_ino != older
    assert [path for path in saved.rglob("*") if path.stat().st_ino not in on_disk] == []


@pytest.mark.parametrize("cause", ["text", "metadata"])
def test_the_older_model_stays_when_saving_fails(saved: Path, tmp_path: Path, cause: str) -> None:
    before = logits_of(load_model(saved).model)
    newer = make_model(make_config(), seed=1)
    text = tmp_path / ("no such folder" if cause == "text" else "text")
    for path in (saved, tmp_path / "first"):
        with pytest.raises((OSError, TypeError)):
            save_model(path, make_config(), newer, text, {"update": object()} if cause == "metadata" else {})
    loaded = load_model(saved)
    assert loaded.metadata["update"] == 12
    assert torch.equal(logits_of(loaded.model), before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "text"]
