"""What attention is given must fit its mask: another shape or something else than a mask is refused."""

import pytest
import torch

import unified.kernels.cpu  # noqa: F401  (registers the backend "blocked")
from unified import masks
from unified.attention import BACKENDS, BackendChoice, attend, choose, prepare, register
from unified.attention.dense import DenseAttention
from unified.attention.sdpa import SdpaAttention
from unified.errors import UnifiedError

CPU = torch.device("cpu")
ROWS, HEADS, QUERIES, KEYS, SIZE = 2, 3, 4, 6, 8


def mask(batched: bool = True):
    """Four queries of six keys, in two rows or in one that serves any number of rows."""
    row = masks.left_to_right(QUERIES).with_memory(KEYS - QUERIES)
    return masks.batch([row] * ROWS) if batched else row


def given(rows=ROWS, heads=HEADS, queries=QUERIES, keys=KEYS, size=SIZE):
    return torch.zeros(rows, heads, queries, size), *torch.zeros(2, rows, heads, keys, size)


def refused(query, key, value, prepared) -> str:
    with pytest.raises(UnifiedError) as raised:
        attend(query, key, value, prepared)
    return str(raised.value)


def test_a_mask_of_one_row_serves_any_number_of_rows_and_of_several_their_own():
    one, two = (prepare(mask(batched), torch.float32, CPU, backend="dense") for batched in (False, True))
    assert one.shape == (0, QUERIES, KEYS) and two.shape == (ROWS, QUERIES, KEYS)
    for rows in (1, 2, 5):
        assert attend(*given(rows), one).shape == (rows, HEADS, QUERIES, SIZE)
    assert attend(*given(), two).shape == (ROWS, HEADS, QUERIES, SIZE)
    assert (
        refused(*given(3), two) == "the mask is for 2 rows of 4 queries and 6 keys, got 3 rows of 4 queries and 6 keys"
    )


@pytest.mark.parametrize("changed", [{"queries": 5}, {"keys": 5}])
def test_lengths_are_those_of_the_mask(changed):
    for batched, of_rows in ((True, "2 rows of "), (False, "")):
        prepared = prepare(mask(batched), torch.float32, CPU, backend="dense")
        lengths = {"queries": QUERIES, "keys": KEYS} | changed
        assert refused(*given(**changed), prepared) == (
            f"the mask is for {of_rows}4 queries and 6 keys, got 2 rows of {lengths['queries']} queries and "
            f"{lengths['keys']} keys"
        )


@pytest.mark.parametrize("backend", ["auto", "sdpa", "blocked"])
@pytest.mark.parametrize("row", [masks.left_to_right(5), masks.bidirectional(5), masks.seq2seq(2, 3)], ids=repr)
def test_every_backend_refuses_other_lengths_than_its_masks(backend, row):
    """Causal and full masks hold no matrix: their kernels would compute all the same."""
    prepared = prepare(masks.batch([row] * 2), torch.float32, CPU, backend=backend)
    right, long = torch.randn(2, 2, 5, 8), torch.randn(2, 2, 7, 8)
    assert attend(right, right, right, prepared).shape == right.shape
    for query, key in ((long, long), (long, right), (right, long)):
        assert refused(query, key, key, prepared).startswith("the mask is for 2 rows of 5 queries and 5 keys, got 2")


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("axis", range(4))
def test_queries_keys_and_values_agree_with_each_other(which, axis):
    """In rows, heads and size; values may be of another size than keys, and queries of another number."""
    tensors = list(given())
    tensors[which] = torch.zeros([n + (i == axis) for i, n in enumerate(tensors[which].shape)])
    prepared = prepare(mask(), torch.float32, CPU, backend="dense")
    if (which, axis) == (2, 3):
        assert attend(*tensors, prepared).shape == (ROWS, HEADS, QUERIES, SIZE + 1)
    elif (which, axis) == (0, 2):
        assert refused(*tensors, prepared).startswith("the mask is for 2 rows of 4 queries")
    else:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors)
        assert refused(*tensors, prepared) == (
            f"query, key and value must agree in rows, heads, keys and size, got {shapes}"
        )


@pytest.mark.parametrize("which", range(3))
def test_all_have_four_axes(which):
    tensors = list(given())
    tensors[which] = tensors[which][0]
    axes = ", ".join("3" if i == which else "4" for i in range(3))
    assert refused(*tensors, prepare(mask(), torch.float32, CPU, backend="dense")) == (
        f"query, key and value must be (rows, heads, length, size), got {axes} axes"
    )


def test_a_backend_without_a_shape_takes_any():
    """A cache of decoding, which stands in place of a backend, has none."""
    prepared = DenseAttention(mask(), torch.float32)
    assert prepared.shape is None and prepared.fully_masked is None
    assert attend(*given(3), DenseAttention(mask(batched=False), torch.float32)).shape[0] == 3


def test_queries_without_a_key_are_known_where_the_mask_hides_tokens_from_themselves():
    alone = masks.batch([masks.left_to_right(3).without_self()] * 2)
    prepared = prepare(alone, torch.float32, CPU)
    assert prepared.fully_masked.tolist() == [[True, False, False]] * 2
    assert prepare(masks.left_to_right(3), torch.float32, CPU).fully_masked is None


def test_something_else_than_a_mask_is_refused():
    with pytest.raises(UnifiedError) as raised:
        prepare(torch.ones(3, 3), torch.float32, CPU)
    assert str(raised.value) == "mask must be an AttentionMask of unified.masks, got Tensor"


def test_a_mask_that_was_not_prepared_is_refused():
    for given_mask in (mask(), mask().dense()):
        assert refused(*given(), given_mask) == "prepared must be what prepare() makes of a mask, got the mask itself"


@pytest.mark.parametrize("rate", [-0.1, 1.5])
@pytest.mark.parametrize("backend", ["dense", "sdpa", "blocked"])
def test_a_rate_of_dropout_is_a_probability(backend, rate):
    prepared = prepare(mask(), torch.float32, CPU, backend=backend)
    with pytest.raises(UnifiedError, match=f"^dropout must be from 0 to 1, got {rate}$"):
        attend(*given(), prepared, dropout=rate)
    for allowed in (0.0, 1.0):
        assert attend(*given(), prepared, dropout=allowed).shape == (ROWS, HEADS, QUERIES, SIZE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": None}, "backend must be the name of an attention backend, got NoneType None"),
        ({"automatic": ("nope",)}, "attention backend 'nope': no such attention backend"),
        ({"device": "gpu"}, "device gpu: PyTorch has none; use cpu, cuda or cuda:NUMBER"),
        ({"device": None}, "device None: PyTorch has none; use cpu"),
    ],
)
def test_options_that_are_none_are_named(options, message):
    with pytest.raises(UnifiedError, match=f"^{message}"):
        prepare(mask(), torch.float32, **({"device": CPU} | options))


def test_a_backend_that_could_not_be_named_is_not_registered():
    class Nameless(BACKENDS["dense"].__mro__[1]):
        """Without a name."""

    class Auto(DenseAttention):
        name = "auto"

    class Numbered(DenseAttention):
        name = 3

    before = dict(BACKENDS)
    for backend in (Nameless, Auto, Numbered):
        with pytest.raises(UnifiedError, match=f"^{backend.__name__}: an attention backend has a name, a text other"):
            register(backend)
    for no_class in (print, dict, DenseAttention.__new__(DenseAttention)):
        with pytest.raises(UnifiedError, match="^a backend must be a subclass of unified.attention.Backend"):
            register(no_class)
    assert before == BACKENDS


def test_what_is_asked_for_beside_the_output_is_known():
    with pytest.raises(UnifiedError) as raised:
        prepare(mask(), torch.float32, CPU, needs="weight")
    assert str(raised.value) == "needs must be 'bias', 'weights' or None, got 'weight'"


def test_a_device_may_be_named():
    assert isinstance(prepare(mask(), torch.float32, "cpu"), type(prepare(mask(), torch.float32, CPU)))


class Typed(DenseAttention):
    """Dense attention that remembers the type for which it was prepared."""

    name = "typed"

    def __init__(self, mask, dtype):
        super().__init__(mask, dtype)
        self.dtype = dtype


def test_under_autocast_of_a_cpu_attention_is_prepared_for_its_type(monkeypatch):
    monkeypatch.setitem(BACKENDS, "typed", Typed)
    for device in (CPU, torch.device("meta")):
        assert prepare(mask(), torch.float32, device, backend="typed").dtype == torch.float32
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = prepare(mask(), torch.float32, device, backend="typed").dtype
        assert found == (torch.bfloat16 if device == CPU else torch.float32)


def test_auto_passes_over_what_does_not_pay_or_serve_and_says_what_it_refused(monkeypatch, caplog):
    class Slow(DenseAttention):
        name = "slow"

        @staticmethod
        def pays(mask, device, dtype, dropout, needs):
            return (dtype, dropout, needs) == (torch.float64, 0.5, "bias")

    class Choosy(DenseAttention):
        name = "choosy"

        @staticmethod
        def unsupported(mask, device, dropout, needs):
            return f"not {dropout} and {needs}"

    for backend in (Slow, Choosy):
        monkeypatch.setitem(BACKENDS, backend.name, backend)
    names = ("slow", "choosy", "dense")
    with caplog.at_level("INFO"):
        assert choose(mask(), CPU, 0.25, needs="weights", automatic=names) is DenseAttention
    assert caplog.messages == ["attention backend 'dense' on cpu (choosy: not 0.25 and weights)"]
    assert choose(mask(), CPU, 0.5, needs="bias", dtype=torch.float64, automatic=names) is Slow
    with pytest.raises(UnifiedError) as raised:
        choose(mask(), CPU, 0.0, automatic=("slow", "choosy"))
    assert str(raised.value) == (
        "no attention backend of slow, choosy can serve this on cpu (choosy: not 0.0 and None); name another, such as "
        "'dense'"
    )


def test_a_choice_skips_other_documents_where_a_backend_that_it_may_take_does():
    own = type("Own", (BackendChoice,), {"automatic": ("dense", "blocked")})
    cuda = torch.device("cuda")
    assert own().skips_other_documents(CPU) and not own("dense").skips_other_documents(CPU)
    assert not BackendChoice().skips_other_documents(CPU) and not own().skips_other_documents(cuda)
    assert BackendChoice("blocked").skips_other_documents(CPU)
    assert DenseAttention(mask(), torch.float32).skips_other_documents(CPU) is False


def test_a_backend_that_gives_no_weights_says_so():
    prepared = prepare(mask(), torch.float32, CPU, backend="sdpa")
    with pytest.raises(UnifiedError) as raised:
        prepared.with_weights(*given())
    assert str(raised.value) == "attention backend 'sdpa' does not give its weights; use 'dense'"


#: Backend -> whether it serves any shape at no further cost, and whether torch.compile can compile it.
DECLARED = {
    "dense": (True, True),
    "sdpa": (True, True),
    "flex": (False, True),
    "flex_flash": (False, True),
    "fused": (False, True),
    "blocked": (False, False),
}


@pytest.mark.parametrize("name", DECLARED)
def test_what_a_backend_declares_can_be_asked_of_its_class_and_of_what_it_makes(name):
    own = BACKENDS[name]
    assert (own.any_shape, own.compiles) == DECLARED[name]
    made = own(mask(), torch.float32)
    assert made.unsupported(mask(), CPU, 0.1, "weights") == own.unsupported(mask(), CPU, 0.1, "weights")
    of_dtype = CPU, torch.float32, 0.0, None
    assert made.pays(mask(), *of_dtype) == own.pays(mask(), *of_dtype)


@pytest.mark.parametrize("name", ["dense", "sdpa", "blocked"])
def test_nothing_is_dropped_unless_that_is_asked_for(name):
    query, key, value = (torch.randn(one.shape) for one in given())
    made = BACKENDS[name](mask(), torch.float32)
    assert torch.equal(made(query, key, value), attend(query, key, value, made, 0.0))
    if name == "dense":
        weights, read = made.with_weights(query, key, value)
        assert torch.equal(read, made(query, key, value)) and torch.allclose(weights.sum(-1), torch.ones(()))


def test_whether_a_query_sees_nothing_is_looked_at_on_a_cpu_alone():
    """A look at a value of a card waits for the card; without one, zeros are filled in there in any case."""
    alone = masks.batch([masks.left_to_right(3).without_self()])
    assert SdpaAttention(alone, torch.float32).empty.squeeze(-1).tolist() == [[[True, False, False]]]
    assert SdpaAttention(mask(), torch.float32).empty is None
    assert SdpaAttention(mask().to("meta"), torch.float32).empty.shape == (ROWS, 1, QUERIES, 1)


@pytest.mark.parametrize(
    ("returned", "got"),
    [
        (lambda out: None, "NoneType"),
        (lambda out: (out, out), "tuple"),
        (lambda out: out.transpose(1, 2), "(2, 4, 3, 8)"),
        (lambda out: out.flatten(1), "(2, 96)"),
    ],
)
def test_a_backend_of_ones_own_returns_a_tensor_of_values(returned, got):
    class Own(DenseAttention):
        name = "own"

        def __call__(self, *given, **more):
            return returned(super().__call__(*given, **more))

    prepared = Own(mask(), torch.float32)
    assert refused(*given(), prepared) == f"attention by Own must be a tensor (2, 3, 4, 8), got {got}"


class Terms:
    """A bias of zeros."""

    tensors = ()

    def dense(self) -> torch.Tensor:
        return torch.zeros(ROWS, HEADS, QUERIES, KEYS)


NO_DROPOUT = (
    " has no attention dropout (got 0.5); set attention_dropout to 0 (fairseq-train --attention-dropout 0) "
    "or use 'sdpa'"
)


@pytest.mark.parametrize("name", ["fused", "flex", "flex_flash"])
def test_what_a_kernel_has_not_is_refused_in_the_call_too(name):
    """`prepare` may have been told of no dropout and no bias."""
    prepared = BACKENDS[name](mask(), torch.float32)
    with pytest.raises(UnifiedError) as raised:
        attend(*given(), prepared, dropout=0.5)
    assert str(raised.value) == ("fused attention" if name == "fused" else "FlexAttention") + NO_DROPOUT
    if name != "fused":
        with pytest.raises(UnifiedError) as raised:
            attend(*given(), prepared, bias=Terms())
        assert str(raised.value) == (
            "FlexAttention does not add the bias of relative positions to the scores; use 'fused' or 'sdpa'"
        )


@pytest.mark.parametrize("name", ["dense", "sdpa", "blocked"])
def test_other_kernels_drop_whatever_prepare_was_told(name):
    """About half of all weights, each of which is 1 / 6."""
    prepared = prepare(masks.batch([masks.bidirectional(KEYS)] * ROWS), torch.float32, CPU, backend=name)
    query, values = torch.zeros(ROWS, HEADS, KEYS, KEYS), torch.eye(KEYS).expand(ROWS, HEADS, -1, -1)
    torch.manual_seed(0)
    dropped = (attend(query, query, values, prepared, dropout=0.5) == 0).float().mean()
    assert 0.35 < dropped < 0.65
