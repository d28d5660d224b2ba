"""Groups of parameters that an optimizer treats differently: heads, layers, and parameters that do not decay.

fairseq hands its optimizers a list of parameters without names. Models of this plug-in therefore mark each parameter
with its :class:`Role`. fairseq's composite optimizer has groups too, but fairseq-train cannot configure it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import FairseqDataclass
from omegaconf import II
from torch import nn

from fairseq_plugins.refusals import require_in
from unified.arguments import Range
from unified.errors import UnifiedError
from unified.model import UnifiedModel
from unified.model.weight_decay import exempt_from_decay

#: fairseq copies this attribute of a parameter where it keeps a copy in another precision.
_ATTRIBUTE = "param_group"
_UNMARKED = (
    "{option}: no parameters of {what}; it is for models of this plug-in, heads are those of --task "
    "unified_understanding, and with --fp16 it needs --fp16-no-flatten-grads"
)


@dataclass(frozen=True)
class Role:
    """Properties of a parameter that its optimizer group depends on.

    Attributes:
        layer: number of its Transformer layer from below, 0 for the embeddings; None outside the Transformer.
        head: whether it belongs to the head of a task, or to an LSTM below it.
        decays: whether weight decay is meant for it, see :func:`unified.model.weight_decay.exempt_from_decay`.
    """

    layer: int | None = None
    head: bool = False
    decays: bool = True


def mark_parameters(model: UnifiedModel) -> None:
    """Attach its :class:`Role` to each parameter of a model."""
    transformer = model.transformer
    layers = {id(parameter): 0 for parameter in transformer.embeddings.parameters()}
    for number, layer in enumerate(transformer.layers):
        layers |= {id(parameter): number for parameter in layer.parameters()}
    of_heads, exempt = {id(parameter) for parameter in model.task_parameters()}, exempt_from_decay(model)
    for name, parameter in model.named_parameters():
        role = Role(layers.get(id(parameter)), id(parameter) in of_heads, name not in exempt)
        setattr(parameter, _ATTRIBUTE, role)


@dataclass
class GroupsConfig(FairseqDataclass):
    """Options of the optimizers that know groups."""

    weight_decay: float = field(
        default=0.0, metadata={"help": "weight decay; biases and LayerNorms are left out, as BERT's code does"}
    )
    decay_biases_and_norms: bool = field(
        default=False, metadata={"help": "let biases and LayerNorms decay too, as SpanBERT's pre-training does"}
    )
    head_weight_decay: Optional[float] = field(
        default=None, metadata={"help": "weight decay of heads (default: that of all parameters, --weight-decay)"}
    )
    head_lr: Optional[float] = field(
        default=None,
        metadata={
            "help": "peak learning rate of heads, with the schedule of --lr; default: --lr, as of all parameters"
        },
    )
    layer_decay: float = field(
        default=1.0,
        metadata={
            "help": "a layer's learning rate as a share of that of the layer above; the highest has --lr, "
            "embeddings have the lowest layer's (XLNet: 0.75 for SQuAD)"
        },
    )
    lr: list[float] = II("optimization.lr")


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters with one rate and one decay.

    Attributes:
        rate: their learning rate as a share of ``--lr``.
        weight_decay: theirs.
        parameters: at least one, but for the first group.
    """

    rate: float
    weight_decay: float
    parameters: Sequence[nn.Parameter]


def parameter_groups(cfg: GroupsConfig, parameters: Sequence[nn.Parameter]) -> list[ParameterGroup]:
    """Divide the parameters of a model by their rates and decays.

    The first group has the rate ``--lr``, which fairseq reads there; it may be empty.

    Args:
        cfg: the options of :class:`GroupsConfig`.

    Raises:
        UnifiedError: an option has a wrong value, or asks for roles that these parameters do not have.
    """
    roles = [vars(parameter).get(_ATTRIBUTE) for parameter in parameters]
    _check(cfg, [role for role in roles if role is not None], unmarked=None in roles)
    top = max((role.layer for role in roles if role is not None and role.layer is not None), default=0)
    groups: dict[tuple[float, float], list[nn.Parameter]] = {(1.0, cfg.weight_decay): []}
    for parameter, role in zip(parameters, roles, strict=True):
        role = role or Role()
        groups.setdefault((_rate(cfg, role, top), _decay(cfg, role)), []).append(parameter)
    return [ParameterGroup(*key, members) for key, members in groups.items()]


def _rate(cfg: GroupsConfig, role: Role, top: int) -> float:
    if role.head and cfg.head_lr is not None:
        return cfg.head_lr / cfg.lr[0]
    return 1.0 if role.layer is None else cfg.layer_decay ** (top - role.layer)


def _decay(cfg: GroupsConfig, role: Role) -> float:
    if not role.decays and not cfg.decay_biases_and_norms:
        return 0.0
    return cfg.head_weight_decay if role.head and cfg.head_weight_decay is not None else cfg.weight_decay


def _check(cfg: GroupsConfig, roles: Sequence[Role], unmarked: bool) -> None:
    decays = {"--weight-decay": cfg.weight_decay, "--head-weight-decay": cfg.head_weight_decay}
    for option, value in {**decays, "--head-lr": cfg.head_lr}.items():
        if value is not None:
            require_in(Range(least=0), option, value)
    for option, value in decays.items():
        if unmarked and value and not cfg.decay_biases_and_norms:
            raise UnifiedError(
                f"{option} {value}: biases and LayerNorms, which shall not decay, cannot be told from other parameters "
                "here; with --fp16 add --fp16-no-flatten-grads, for models that are not of this plug-in "
                "--decay-biases-and-norms"
            )
    for option, value in (("--head-lr", cfg.head_lr), ("--head-weight-decay", cfg.head_weight_decay)):
        if value is not None and not any(role.head for role in roles):
            raise UnifiedError(_UNMARKED.format(option=option, what="a head"))
    if cfg.head_lr is not None and not cfg.lr[0] > 0:
        raise UnifiedError(f"--head-lr: --lr must be above 0, got {cfg.lr[0]}")
    if not 0 < cfg.layer_decay <= 1:
        raise UnifiedError(f"--layer-decay must be above 0 and at most 1, got {cfg.layer_decay}")
    if cfg.layer_decay != 1 and not any(role.layer is not None for role in roles):
        raise UnifiedError(_UNMARKED.format(option="--layer-decay", what="layers"))
