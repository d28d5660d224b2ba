"""Linear maps by oneDNN: values and gradients are torch's, and only where they should be are they taken."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional

from unified.kernels.cpu import linear as by_onednn
from unified.kernels.cpu.linear import (
    FewRowsLinear,
    FewRowsLinearMap,
    Linear,
    few_rows_linear,
    linear,
    processor_vendor,
    why_not_few_rows,
    why_not_onednn,
)

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this torch has no linear map by oneDNN"
)


@pytest.fixture
def counted(monkeypatch):
    """The products that oneDNN makes, also those summed over the rows for a weight's gradient, are counted."""
    calls, product, sums = [], by_onednn.onednn_product, by_onednn.onednn_sums
    monkeypatch.setattr(by_onednn, "onednn_product", lambda *inputs: calls.append(1) or product(*inputs))
    monkeypatch.setattr(by_onednn, "onednn_sums", lambda *inputs: calls.append(1) or sums(*inputs))
    return calls


def inputs(*shape, outputs, bias=True, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    sizes = (shape, (outputs, shape[-1]), (outputs,) if bias else None)
    drawn = [None if size is None else torch.randn(size, generator=generator, dtype=dtype) for size in sizes]
    return [None if tensor is None else tensor.requires_grad_() for tensor in drawn]


SHAPES = [((7, 5), 2), ((3, 33, 48), 96), ((2, 3, 4, 16), 1), ((1, 64), 1000), ((0, 8), 3), ((2, 0, 8), 3)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("shape", "outputs"), SHAPES, ids=str)
def test_values_and_gradients_are_those_of_float64(counted, shape, outputs, bias):
    given = inputs(*shape, outputs=outputs, bias=bias)
    out = linear(*given)
    exact = [None if tensor is None else tensor.detach().double().requires_grad_() for tensor in given]
    wanted = functional.linear(*exact)
    torch.testing.assert_close(out.double(), wanted, atol=1e-5, rtol=1e-5)
    weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    leaves = [tensor for tensor in given if tensor is not None]
    found = torch.autograd.grad((out * weight).sum(), leaves)
    known = torch.autograd.grad((wanted * weight).sum(), [tensor for tensor in exact if tensor is not None])
    for own, other in zip(found, known, strict=True):
        assert own.dtype == torch.float32
        torch.testing.assert_close(own.double(), other, atol=1e-4, rtol=1e-5)
    assert len(counted) == (3 if out.numel() else 0)


def test_tensors_with_gaps_are_copied_or_left_to_torch(counted, monkeypatch):
    """oneDNN would fall back to its slow reference for them."""
    product = by_onednn.onednn_product

    def checked(left, right, bias=None):
        assert all(side.is_contiguous() or side.T.is_contiguous() for side in (left, right))
        return product(left, right, bias)

    monkeypatch.setattr(by_onednn, "onednn_product", checked)
    states, weight, _ = inputs(5, 6, 8, outputs=12, bias=False)
    turned, some = states.transpose(0, 1), weight[3:9]
    for part in (turned, turned[:, :2], turned[..., 0:1].expand(6, 5, 8)):
        torch.testing.assert_close(linear(part, some), functional.linear(part, some))
        taken = [torch.autograd.grad(map_(part, some).sum(), [states, weight]) for map_ in (linear, functional.linear)]
        torch.testing.assert_close(*taken, atol=1e-4, rtol=1e-5)
    assert len(counted) == 4 * 3
    torch.testing.assert_close(
        linear(turned[..., :4], weight[:, :4]), functional.linear(turned[..., :4], weight[:, :4])
    )
    assert len(counted) == 4 * 3


def test_what_onednn_would_read_wrongly_is_left_to_torch(counted):
    states, weight, bias = inputs(3, 8, outputs=6)
    torch.testing.assert_close(linear(states[0], weight, bias), functional.linear(states[0], weight, bias))
    with_gaps = torch.arange(12.0).view(6, 2)[:, 0]
    assert torch.equal(linear(states * 0, weight, with_gaps)[0], with_gaps)
    with pytest.raises(RuntimeError, match="3x8 and 7x6|mat1 and mat2"):
        linear(states, torch.zeros(6, 7), bias)
    with pytest.raises(RuntimeError, match="dtype"):
        linear(states, weight.bfloat16())
    assert linear(states.to("meta"), weight.to("meta")).shape == (3, 6)
    assert not counted


def test_only_gradients_that_are_wanted_are_made(counted):
    states, weight, bias = inputs(4, 8, outputs=3)
    linear(states.detach(), weight, bias).sum().backward()
    assert len(counted) == 2 and states.grad is None
    counted.clear()
    linear(states, weight.detach(), bias.detach()).sum().backward()
    assert len(counted) == 2 and states.grad.abs().sum() > 0
    counted.clear()
    linear(states.detach(), weight.detach(), bias).sum().backward()  # as where all but the biases is frozen
    assert len(counted) == 1
    torch.testing.assert_close(bias.grad, torch.full((3,), 2 * 4.0))  # twice, with the first call above
    counted.clear()
    with torch.no_grad():
        assert not linear(states, weight, bias).requires_grad
    assert len(counted) == 1


def test_the_module_is_torchs_with_the_same_parameters(counted):
    torch.manual_seed(0)
    own = Linear(6, 4)
    torch.manual_seed(0)
    other = torch.nn.Linear(6, 4)
    assert own.state_dict().keys() == other.state_dict().keys()
    states = torch.randn(3, 6)
    torch.testing.assert_close(own(states), other(states))
    assert counted


@pytest.mark.parametrize("bias", [None, "frozen", "learnt"])
def test_only_a_bias_that_learns_is_summed(monkeypatch, bias):
    asked, sums = [], by_onednn.onednn_sums
    monkeypatch.setattr(by_onednn, "onednn_sums", lambda *given: asked.append(given[-1]) or sums(*given))
    states, weight, drawn = inputs(4, 8, outputs=3)
    given = None if bias is None else drawn.detach() if bias == "frozen" else drawn
    linear(states, weight, given).sum().backward()
    assert asked == [bias == "learnt"]
    assert (drawn.grad is None) == (bias != "learnt")
    torch.testing.assert_close(weight.grad, states.detach().sum(0).expand(3, 8))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_other_types_are_torchs(counted, dtype):
    given = inputs(3, 8, outputs=4, dtype=dtype)
    assert torch.equal(linear(*given), functional.linear(*given))
    assert not counted


def test_autocast_decides_the_type(counted):
    given = inputs(3, 8, outputs=4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = linear(*given)
    assert out.dtype == torch.bfloat16 and not counted


def test_torchs_switch_turns_it_off(counted):
    given = inputs(3, 8, outputs=4)
    with torch.backends.mkldnn.flags(enabled=False):
        assert torch.equal(linear(*given), functional.linear(*given))
    assert not counted
    linear(*given)
    assert counted


@pytest.mark.parametrize(
    ("columns", "inner", "by_onednn"),
    [(2048, 128, range(16, 57)), (2047, 128, ()), (7999, 33, range(16, 57)), (8000, 33, range(4, 57)), (8000, 32, ())],
)
def test_few_rows_are_those_that_mkl_gives_to_one_thread(counted, monkeypatch, columns, inner, by_onednn):
    """Rows of several dimensions count together."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    weight, bias = (
        torch.randn(shape, generator=torch.Generator().manual_seed(1)) for shape in ((columns, inner), columns)
    )
    module = FewRowsLinear(inner, columns)
    module.load_state_dict({"weight": weight, "bias": bias})
    for rows in (1, 3, 4, 15, 16, 56, 57, 64):
        states = torch.randn(rows, 1, inner, generator=torch.Generator().manual_seed(2))
        wanted, taken = functional.linear(states, weight, bias), rows in by_onednn
        for product in (few_rows_linear, FewRowsLinearMap()):
            counted.clear()
            with torch.no_grad():
                torch.testing.assert_close(product(states, weight, bias), wanted, atol=1e-4, rtol=1e-5)
            assert len(counted) == taken
        with torch.no_grad():
            torch.testing.assert_close(module(states), wanted, atol=1e-4, rtol=1e-5)
        assert len(counted) == 2 * taken


def test_few_rows_are_torchs_with_gradients_and_with_one_thread(counted, monkeypatch):
    given = inputs(16, 128, outputs=2048)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert torch.equal(few_rows_linear(*given), functional.linear(*given)) and not counted
    with torch.no_grad():
        assert few_rows_linear(given[0][:, :0], given[1][:, :0]).shape == (16, 2048) and not counted
        few_rows_linear(*given)
        assert len(counted) == 1
        monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
        few_rows_linear(*given)
        assert len(counted) == 1


@pytest.mark.parametrize(
    ("capability", "vendor", "expected", "of_few_rows"),
    [
        ("AVX512", "AuthenticAMD", None, "MKL leaves AVX-512 idle on this processor"),
        ("AVX2", "AuthenticAMD", "this processor has no AVX-512", "this processor has no AVX-512"),
        ("AVX512", "GenuineIntel", "MKL uses AVX-512 on this processor", None),
    ],
)
def test_it_is_for_processors_that_mkl_does_not_serve(monkeypatch, tmp_path, capability, vendor, expected, of_few_rows):
    described = tmp_path / "cpuinfo"
    described.write_text(f"processor\t: 0\nvendor_id\t: {vendor}\n")
    assert processor_vendor(described) == vendor
    monkeypatch.setattr(by_onednn, "processor_vendor", lambda: vendor)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    assert why_not_onednn() == expected and why_not_few_rows() == of_few_rows
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    assert why_not_onednn() == "this torch computes products without MKL"
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    described.unlink()
    assert processor_vendor(described) is None
    monkeypatch.setattr(by_onednn, "processor_vendor", lambda: None)
    assert why_not_onednn() == "nothing says whose processor this is"


@pytest.mark.parametrize("namespace", ["mkldnn", "aten"])
def test_products_are_missing_where_torch_has_them_no_more(monkeypatch, namespace):
    with monkeypatch.context() as patched:
        patched.setattr(torch.ops, namespace, SimpleNamespace())
        found = why_not_onednn(), why_not_few_rows()
    assert found == ("this torch has no linear map by oneDNN",) * 2


def test_the_vendor_is_what_linux_says(tmp_path, monkeypatch):
    described = tmp_path / "cpuinfo"
    described.write_text(
        "processor\t: 0\nmodel name\t: A vendor_id: no\nvendor_id\t:  Somebody : else \nvendor_id\t: B\n"
    )
    assert processor_vendor(described) == "Somebody : else"
    described.write_text("processor\t: 0\n")
    assert processor_vendor(described) is None
    read = []
    monkeypatch.setattr(Path, "exists", lambda self: read.append(str(self)) or False)
    assert processor_vendor() is None and read == ["/proc/cpuinfo"]


@torch.no_grad()
@pytest.mark.parametrize("product", [linear, few_rows_linear])
def test_compiled_products_are_torchs(counted, monkeypatch, product):
    given = inputs(16, 128, outputs=2048)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    with monkeypatch.context() as patched:
        patched.setattr(torch.compiler, "is_compiling", lambda: True)
        assert torch.equal(product(*given), functional.linear(*given)) and not counted
    product(*given)
    assert counted


@pytest.mark.parametrize("order", ["the sum", "squares"])
def test_second_derivatives_are_those_of_float64(counted, order):
    """A penalty of the gradient: of a sum that gradient depends on no gradient, and once had no graph in silence."""
    given, found = inputs(5, 8, outputs=4), []
    for product, dtype in ((linear, torch.float32), (functional.linear, torch.float64)):
        leaves = [one.detach().to(dtype).requires_grad_() for one in given]
        out = product(*leaves)
        head = out.sum() if order == "the sum" else out.square().sum()
        penalty = sum(one.square().sum() for one in torch.autograd.grad(head, leaves, create_graph=True))
        again = torch.autograd.grad(penalty + out.sin().sum(), leaves)
        found.append([one.double() for one in (penalty.detach(), *again)])
    assert counted and found[1][2].abs().max() > 10
    torch.testing.assert_close(*found, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize(
    ("states", "weight", "bias"),
    [
        (torch.ones(8), torch.ones(4, 8), None),
        (torch.ones(2, 8), torch.ones(8), None),
        (torch.ones(0, 8), torch.ones(4, 8), None),
        (torch.ones(2, 8).double(), torch.ones(4, 8).double(), None),
        (torch.ones(2, 8), torch.ones(0, 8), torch.ones(0)),
        (torch.ones(2, 8), torch.ones(8, 4).T, None),
        (torch.ones(2, 8), torch.ones(4, 8), torch.ones(8)[::2]),
        (torch.ones(2, 8), torch.ones(4, 8), torch.ones(())),
        (torch.ones(2, 8), torch.ones(4, 8), torch.ones(1)),
        (torch.ones(2, 8), torch.ones(4, 8), torch.ones(2, 4)),
    ],
    ids=[
        "one row",
        "a vector",
        "no rows",
        "float64",
        "no columns",
        "turned",
        "gaps",
        "a number",
        "one for all",
        "a bias for each row",
    ],
)
def test_inputs_of_other_shapes_are_torchs(counted, states, weight, bias):
    with torch.no_grad():
        assert torch.equal(linear(states, weight, bias), functional.linear(states, weight, bias))
    assert not counted


def test_one_value_is_enough(counted):
    given = torch.ones(1, 1), torch.full((1, 1), 3.0), torch.full((1,), 2.0)
    assert linear(*given).tolist() == [[5.0]] and counted


def test_a_bias_of_another_type_is_refused_by_torch(counted):
    with pytest.raises(RuntimeError):
        linear(torch.ones(2, 8), torch.ones(4, 8), torch.ones(4).double())
    assert not counted


@torch.no_grad()
@pytest.mark.parametrize(("rows", "taken"), [(3, False), (4, True)])
def test_rows_of_a_matrix_of_one_column_are_counted(counted, monkeypatch, rows, taken):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert few_rows_linear(torch.ones(rows, 1), torch.ones(2**18, 1)).shape == (rows, 2**18)
    assert len(counted) == taken


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.parametrize("kind", [Linear, FewRowsLinear])
def test_nested_tensors_are_left_to_torch(kind, layout, counted, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    layer = kind(512, 512)  # of a size, and of as many rows, as are given to oneDNN
    states = torch.nested.nested_tensor([torch.randn(3, 512), torch.randn(17, 512)], layout=layout)
    plain = torch.nested.nested_tensor([*states.unbind()], layout=layout)
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            found, expected = layer(states).unbind(), functional.linear(plain, layer.weight, layer.bias).unbind()
        assert all(torch.allclose(*pair, atol=1e-5) for pair in zip(found, expected, strict=True))
    assert not counted


def test_a_sparse_weight_is_left_to_torch(counted):
    layer, states = Linear(8, 8), torch.randn(4, 8)
    layer.weight = torch.nn.Parameter(torch.eye(8).to_sparse_csr())
    torch.testing.assert_close(layer(states), states + layer.bias)
    assert not counted
