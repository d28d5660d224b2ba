#!/usr/bin/env bash
# prepare.sh OUTPUT TOKENIZER [options of summaries.py]: XSum (Narayan et al. 2018) -> OUTPUT/text -> OUTPUT/data.
# TOKENIZER is the folder the checkpoint was pre-trained on, or unigram to train one.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 2 ] || usage "prepare.sh OUTPUT TOKENIZER [--local TRAIN VALID TEST]"
prepare_summaries xsum "$@"
