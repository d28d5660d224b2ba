"""What is swapped for a CPU gives the numbers of the plain model: values, gradients, parameters and initial weights."""

import copy
import logging

import pytest
import torch
from torch import nn

from tests.support.checkpoint_samples import checkpoint, data_folder
from unified import UnifiedLM, masks
from unified.attention import BackendChoice
from unified.errors import UnifiedError
from unified.kernels.cpu import accelerate, quantize
from unified.kernels.cpu import linear as by_onednn
from unified.kernels.cpu.blocked import BlockedAttention
from unified.kernels.cpu.dropout import Dropout
from unified.kernels.cpu.int8 import Int8Linear, Int8LinearMap
from unified.kernels.cpu.linear import FewRowsLinear, FewRowsLinearMap, Linear, OneDnnLinearMap, why_not_onednn
from unified.kernels.cpu.swaps import BlockedChoice
from unified.kernels.plain import LinearMap
from unified.model import PRESETS, UnifiedModel

LENGTH = 160


@pytest.fixture
def idle_avx512(monkeypatch):
    """Pretends that torch's products leave the processor's AVX-512 idle; oneDNN computes on every processor."""
    monkeypatch.setattr(by_onednn, "processor_vendor", lambda: "AuthenticAMD")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    if why_not_onednn() is not None:
        pytest.skip(why_not_onednn())


def language_model(preset: str, **changes) -> UnifiedModel:
    torch.manual_seed(0)
    rates = dict.fromkeys(("dropout", "attention_dropout", "inner_dropout"), 0.0)
    return UnifiedModel.for_language(
        PRESETS[preset](vocabulary_size=50, initializer_range=0.1, **rates, **changes)
    ).train()


def logits(model: UnifiedModel) -> torch.Tensor:
    """Logits of packed rows, some of whose tokens are padding."""
    rows = [masks.pack([masks.left_to_right(70), masks.bidirectional(80)], length=LENGTH) for _ in range(2)]
    tokens = torch.arange(2 * LENGTH).view(2, LENGTH) % min(50, model.config.vocabulary_size)
    positions = torch.tensor([[*range(70), *range(80), *[0] * (LENGTH - 150)]] * 2)
    return model.logits(model.transformer(tokens, positions, positions % 2, masks.batch(rows)).flatten(0, 1))


@pytest.mark.parametrize("preset", ["unified_lm_tiny", "anna_tiny", "xlnet_tiny"])
def test_values_and_gradients_are_those_of_the_plain_model(preset, idle_avx512):
    plain = language_model(preset)
    fast = accelerate(copy.deepcopy(plain))
    assert isinstance(fast.transformer.backend(_long(), torch.float32, torch.device("cpu")), BlockedAttention)
    assert not isinstance(plain.transformer.backend(_long(), torch.float32, torch.device("cpu")), BlockedAttention)
    assert {Linear, OneDnnLinearMap, Dropout} <= set(map(type, fast.modules()))
    found = {}
    for model in (plain, fast):
        out = logits(model)
        (out * torch.linspace(-1, 1, out.numel()).view_as(out)).sum().backward()
        found[model] = out.detach()
    torch.testing.assert_close(found[fast], found[plain], atol=1e-4, rtol=1e-4)
    own = dict(fast.named_parameters())
    for name, parameter in plain.named_parameters():
        if parameter.grad is not None:
            scale = float(parameter.grad.abs().max())
            torch.testing.assert_close(own[name].grad, parameter.grad, atol=1e-4 * scale + 1e-4, rtol=1e-3, msg=name)


def _long() -> masks.AttentionMask:
    return masks.batch([masks.pack([masks.bidirectional(128)] * 4, length=512)])


def test_the_state_dict_the_parameters_and_the_order_of_draws_stay():
    plain = language_model("xlnet_tiny")
    state, parameters, generator = plain.state_dict(), list(plain.parameters()), torch.get_rng_state()
    modules = [id(module) for module in plain.modules()]
    fast = accelerate(plain)
    assert fast is plain and [id(module) for module in fast.modules()] == modules
    assert torch.equal(torch.get_rng_state(), generator)
    assert list(fast.state_dict()) == list(state)
    assert all(own is other for own, other in zip(fast.parameters(), parameters, strict=True))
    fresh = language_model("xlnet_tiny")
    fresh.load_state_dict(fast.state_dict())
    accelerate(fresh).load_state_dict(state)


class Doubled(nn.Linear):
    """A linear map of another kind."""

    def forward(self, states):
        return 2 * super().forward(states)


def test_where_mkl_uses_avx512_few_rows_alone_go_by_onednn(idle_avx512, monkeypatch, caplog):
    monkeypatch.setattr(by_onednn, "processor_vendor", lambda: "GenuineIntel")
    with caplog.at_level(logging.INFO):
        model = accelerate(nn.ModuleList([nn.Linear(4, 4), LinearMap(), nn.Linear(4, 5)]))
    assert [type(module) for module in model] == [FewRowsLinear, FewRowsLinearMap, FewRowsLinear]
    assert caplog.records[-1].message == (
        "modules of ModuleList for a CPU: swapped: Linear x 2 (oneDNN for a few rows), "
        "LinearMap x 1 (oneDNN for a few rows)"
    )
    assert [type(module) for module in quantize(model)] == [Int8Linear, Int8LinearMap, Int8Linear]


def test_every_plain_module_is_swapped_and_no_other_is(idle_avx512, caplog):
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            parts = nn.Linear(4, 4), nn.Sequential(nn.Dropout(0.1), Doubled(4, 4)), LinearMap(), BackendChoice()
            model = accelerate(nn.ModuleList(parts))
    (note,) = [record.message for record in caplog.records]  # once for models of one kind
    first, (second, third), fourth, fifth = model
    kinds = [type(module) for module in (first, second, third, fourth)]
    assert kinds == [Linear, Dropout, Doubled, OneDnnLinearMap]
    assert fifth.skips_other_documents(torch.device("cpu")) and not fifth.skips_other_documents(torch.device("cuda"))
    assert note == (
        "modules of ModuleList for a CPU: swapped: Linear x 1 (oneDNN), LinearMap x 1 (oneDNN), "
        "Dropout x 1 (16 random bits a decision), BackendChoice x 1 (attention in tiles where it pays)"
    )


def test_a_reason_not_to_swap_is_logged_and_kept_to(monkeypatch, caplog):
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    with caplog.at_level(logging.INFO):
        model = accelerate(nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)))
    assert {type(module) for module in model} == {nn.Linear}
    assert "left as they are: Linear x 3 (this torch computes products without MKL)" in caplog.text


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ([nn.LayerNorm(3)], "none to swap"),
        ([nn.Linear(3, 3)], "left as they are: Linear x 1 (this torch computes products without MKL)"),
        (
            [LinearMap(), nn.Linear(3, 3), nn.Dropout(0.1)],
            "swapped: Dropout x 1 (16 random bits a decision); left as they are: "
            "Linear x 1 (this torch computes products without MKL), "
            "LinearMap x 1 (this torch computes products without MKL)",
        ),
    ],
)
def test_what_is_done_and_what_is_not_is_said_in_one_line(modules, said, monkeypatch, caplog):
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    before = [type(module) for module in modules]
    with caplog.at_level(logging.INFO):
        accelerate(Named(*modules))
    assert caplog.records[-1].message == f"modules of Named for a CPU: {said}"
    assert [type(module) for module in modules] == [Dropout if one is nn.Dropout else one for one in before]


class Named(nn.Sequential):
    """A model of a class of its own, so that what is logged once for each kind is logged."""


def test_a_model_that_is_loaded_for_a_user_is_swapped(tmp_path):
    vocabulary = data_folder(tmp_path / "data", pairs=False)
    plain = checkpoint(tmp_path / "model" / "checkpoint_last.pt", vocabulary, str(tmp_path / "data"))
    loaded = UnifiedLM.from_pretrained(tmp_path / "model" / "checkpoint_last.pt").model
    assert isinstance(loaded.transformer.backend, BlockedChoice)
    assert {type(module) for module in loaded.modules()}.isdisjoint({nn.Dropout, BackendChoice})
    torch.testing.assert_close(logits(loaded), logits(plain), atol=1e-4, rtol=1e-4)


def test_a_plain_model_is_plain():
    """It holds modules of torch and of the model alone."""
    model = language_model("unified_lm_tiny")
    assert not any(type(module).__module__.startswith("unified.kernels.cpu") for module in model.modules())
    assert type(model.transformer.backend) is BackendChoice


@pytest.mark.parametrize("function", [accelerate, quantize])
@pytest.mark.parametrize(
    ("given", "called"), [("x", "str 'x'"), (None, "NoneType None"), (nn.Linear, f"type {nn.Linear}")]
)
def test_what_is_no_module_is_refused(function, given, called):
    with pytest.raises(UnifiedError) as raised:
        function(given)
    assert str(raised.value) == f"model must be a torch.nn.Module, got {called}"
