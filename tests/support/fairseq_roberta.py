"""Gives a RoBERTa's checkpoint random weights; writes states and logits that fairseq computes of random tokens."""

import argparse
import sys

import numpy as np
import torch
from fairseq import checkpoint_utils

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
    np.savez(answer, tokens=tokens, logits=logits, states=states, symbols=np.array(task.source_dictionary.symbols))
