"""Parameters that weight decay leaves alone."""

from __future__ import annotations

from torch import nn


def exempt_from_decay(model: nn.Module) -> set[str]:
    """Names of biases and of the norms' parameters, which the published code of BERT, UniLM and XLNet does not decay.

    The vectors that XLNet's attention adds to queries decay, as in its code, which lists them as exceptions.
    """
    return {
        f"{path}.{name}" if path else name
        for path, module in model.named_modules()
        for name, _ in module.named_parameters(recurse=False)
        if name.startswith("bias") or isinstance(module, nn.LayerNorm | nn.RMSNorm)
    }
