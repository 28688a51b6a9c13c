import itertools
from importlib.metadata import version

import numpy as np
import pytest
import torch
from conftest import Project
from torch import nn

import nmt
from nmt.config import Config
from nmt.corpus.dataset import EncodedPairs, Sequences
from nmt.layers.kernels.cells import cpu_has_bfloat16_lstm
from nmt.models.build import build_model
from nmt.system import device as devices
from nmt.system.device import (
    autocast,
    describe_environment,
    fixed_order,
    resolve_device,
    resolve_precision,
    restored_products,
    use_fast_products,
)
from nmt.system.errors import ConfigError
from nmt.training.loop import Reported, start, training_events


def test_auto_is_an_available_device() -> None:
    device = resolve_device("auto")
    without_cuda = "mps" if torch.backends.mps.is_available() else "cpu"
    assert device.type == ("cuda" if torch.cuda.is_available() else without_cuda)
    assert float(torch.ones(2, device=device).sum()) == 2.0


def absent() -> list[str]:
    names = [f"cuda:{torch.cuda.device_count()}", "cuda:99", "cuda:128", "cuda:256", "cuda:99999999999"]
    names += [] if torch.cuda.is_available() else ["cuda"]
    names += [] if torch.backends.mps.is_available() else ["mps"]
    return names


@pytest.mark.parametrize(
    ("name", "message"),
    [
        *((name, "is not available .*; use auto or cpu") for name in absent()),
        *((name, "must be auto, cpu, cuda, cuda:N or mps") for name in ("meta", "cuda:-1", "cuda:x", "cpu:1", "")),
    ],
)
def test_an_absent_device_is_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^device {name}:? {message}$"):
        resolve_device(name)


@pytest.mark.parametrize("shape", [(256, 256, 256), (64, 512, 1000), (33, 100, 7), (1, 300, 512)])
def test_fast_products_are_as_exact_as_fp32(shape: tuple[int, int, int]) -> None:
    use_fast_products()
    torch.manual_seed(5)
    rows, inner, columns = shape
    left, weight = torch.randn(rows, inner), torch.randn(columns, inner)
    exact = left.double() @ weight.double().T
    for found in (left @ weight.T, nn.functional.linear(left, weight)):
        assert float((found.double() - exact).norm() / exact.norm()) < 2e-6


@pytest.mark.parametrize("module", [nn.LSTM, nn.GRU])
def test_fast_products_leave_recurrent_layers_exact(module: type[nn.LSTM] | type[nn.GRU]) -> None:
    use_fast_products()
    torch.manual_seed(5)
    rnn, inputs = module(64, 128, batch_first=True), torch.randn(8, 10, 64)
    with torch.no_grad():
        found, _ = rnn(inputs)
        exact, _ = rnn.double()(inputs.double())
    assert float((found.double() - exact).norm() / exact.norm()) < 1e-5


def test_the_switch_says_whether_it_stays_on() -> None:
    torch.set_float32_matmul_precision("highest")
    stays = use_fast_products()
    assert torch.get_float32_matmul_precision() == ("medium" if stays else "highest")
    if torch.cuda.is_available():
        assert not stays


@pytest.mark.parametrize(("gain", "expected"), [(2.0, "bfloat16"), (1.2, "float32"), (0.3, "float32")])
def test_the_automatic_precision_is_bfloat16_where_products_are_faster(
    gain: float, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_bfloat16_gain", lambda: gain)
    assert resolve_precision("auto", torch.device("cpu")) == expected
    assert resolve_precision("auto", torch.device("mps")) == "float32"
    for name in ("float32", "bfloat16"):
        assert resolve_precision(name, torch.device("cpu")) == name


def test_products_take_time() -> None:
    slowest = 1 / 60 if cpu_has_bfloat16_lstm() else 1 / 1000  # 1 / 190 on a CPU with AVX2 alone
    assert slowest < devices._bfloat16_gain() < 60


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([3 / 64, 9 / 64, 8 / 64, 2 / 64], 3.0 / 2.0),
        ([1 / 64, 128 / 64], 1.0 / 128.0),  # bfloat16 emulated: one product is enough
    ],
)
def test_the_gain_is_the_ratio_of_the_fastest_products(
    times: list[float], expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each product takes the time between two readings of the clock: float32 and bfloat16 in turn, for 0.2 s.
    clock = itertools.accumulate([0.0, *itertools.chain.from_iterable((took, 0.0) for took in times)])
    monkeypatch.setattr(devices.time, "perf_counter", lambda: next(clock))
    assert devices._bfloat16_gain() == expected


def test_autocast_is_bfloat16_or_nothing() -> None:
    left = torch.ones(2, 2)
    with autocast(torch.device("cpu"), "bfloat16"):
        assert (left @ left).dtype == torch.bfloat16
    with autocast(torch.device("cpu"), "float32"):
        assert (left @ left).dtype == torch.float32


def test_the_environment_is_described() -> None:
    metadata = describe_environment(torch.device("cpu"))
    assert metadata["torch"] == torch.__version__
    assert metadata["nmt"] == nmt.__version__
    assert (metadata["sacrebleu"], metadata["sentencepiece"]) == (version("sacrebleu"), version("sentencepiece"))
    assert metadata["device"] == "cpu"
    assert metadata["threads"] == torch.get_num_threads()


def losses(device: torch.device, order: str, precision: str) -> list[float]:
    """Losses of the first 20 updates of a small model."""
    rng = np.random.default_rng(0)
    ids = [rng.integers(4, 20, size=rng.integers(1, 9)).tolist() for _ in range(200)]
    pairs = EncodedPairs(Sequences.pack(ids), Sequences.pack([sequence[::-1] for sequence in ids]))
    layers = {"encoder": {"hidden_size": 16}, "decoder": {"hidden_size": 32, "order": order}}
    options = {"max_updates": 20, "log_every": 1, "precision": precision, "optimizer": {"learning_rate": 0.01}}
    config = Config(model={"embedding_size": 16, "dropout": 0.0, **layers}, train=options)
    torch.manual_seed(0)
    model = build_model(config.model, 20, 20).to(device)
    events = training_events(start(model, pairs, config.train), pairs, config)
    return [event.loss for event in events if isinstance(event, Reported)]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-3), ("bfloat16", 3e-2)])
@pytest.mark.parametrize("order", ["bahdanau", "luong"])
def test_a_gpu_learns_what_the_cpu_learns(order: str, precision: str, tolerance: float) -> None:
    expected = losses(torch.device("cpu"), order, "float32")
    found = losses(torch.device("cuda"), order, precision)
    assert len(found) == 20
    assert found == pytest.approx(expected, rel=tolerance)


def test_fixed_order_ends_with_its_block() -> None:
    for enabled, warn_only in ((False, False), (True, True)):
        torch.use_deterministic_algorithms(enabled, warn_only=warn_only)
        try:
            with fixed_order(wanted=True):
                assert torch.are_deterministic_algorithms_enabled()
                assert not torch.is_deterministic_algorithms_warn_only_enabled()
            assert torch.are_deterministic_algorithms_enabled() is enabled
            assert torch.is_deterministic_algorithms_warn_only_enabled() is warn_only
        finally:
            torch.use_deterministic_algorithms(False)
    with fixed_order(wanted=False):
        assert not torch.are_deterministic_algorithms_enabled()


def test_a_kernel_without_a_fixed_order_is_refused_by_name() -> None:
    reason = "cumsum_cuda_kernel does not have a deterministic implementation, but you set more"
    refused = pytest.raises(ConfigError, match=r"^train.deterministic: true, but cumsum_cuda_kernel .*; set false$")
    with refused, fixed_order(wanted=True):
        raise RuntimeError(reason)  # as torch does on a GPU
    with pytest.raises(RuntimeError, match=r"^another$"), fixed_order(wanted=True):
        raise RuntimeError("another")


def test_fast_products_end_with_what_needs_them(random_data: Project) -> None:
    for name in ("highest", "medium"):
        torch.set_float32_matmul_precision(name)
        with restored_products():
            torch.set_float32_matmul_precision("high")
        assert torch.get_float32_matmul_precision() == name
        assert list(nmt.check(random_data.config, data=random_data.data))
        assert torch.get_float32_matmul_precision() == name
