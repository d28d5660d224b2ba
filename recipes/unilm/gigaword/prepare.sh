#!/usr/bin/env bash
# prepare.sh OUTPUT TOKENIZER [options of summaries.py]: Gigaword (Rush et al. 2015) -> OUTPUT/text -> OUTPUT/data.
# The text is lower-cased, tokenized and has # for digits; it is used as it is. The paper's subset: --subset 10000.
# TOKENIZER is the folder the checkpoint was pre-trained on, or unigram to train one.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 2 ] || usage "prepare.sh OUTPUT TOKENIZER [--subset N] [--local TRAIN VALID TEST]"
prepare_summaries gigaword "$@"
