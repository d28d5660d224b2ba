"""Gives a RoBERTa's checkpoint random weights; writes states and logits that fairseq computes of random tokens.

And the tokens of a text and of two texts as fairseq's interface of the published RoBERTa joins them.
"""

import argparse
import sys

import numpy as np
import torch
from fairseq import checkpoint_utils
from fairseq.models.roberta.hub_interface import RobertaHubInterface
from omegaconf import OmegaConf

if __name__ == "__main__":
    path, answer = sys.argv[1:]
    torch.serialization.add_safe_globals([argparse.Namespace])
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([path])
    model = models[0].eval()
    torch.manual_seed(0)
    for parameter in model.parameters():  # biases included
        torch.nn.init.normal_(parameter, std=0.3)
    content = torch.load(path)
    content["model"] = model.state_dict()
    torch.save(content, path)
    tokens = torch.randint(4, len(task.source_dictionary), (3, 17))
    with torch.no_grad():
        logits, states = model(tokens)[0], model(tokens, features_only=True)[0]
    interface = RobertaHubInterface(OmegaConf.create({"bpe": None}), task, model)
    interface.bpe = argparse.Namespace(encode=str)  # texts are symbols of the dictionary already
    texts = [" ".join(task.source_dictionary.symbols[begin : begin + 3]) for begin in (5, 9)]
    np.savez(
        answer, tokens=tokens, logits=logits, states=states, symbols=np.array(task.source_dictionary.symbols),
        texts=np.array(texts), single=interface.encode(texts[0]), pair=interface.encode(*texts),
    )  # fmt: skip
