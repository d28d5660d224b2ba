#!/usr/bin/env bash
# prepare.sh OUTPUT TOKENIZER [options of summaries.py]: CNN/DailyMail (non-anonymized, 3.0.0, cased) -> OUTPUT/text -> OUTPUT/data.
# TOKENIZER is the folder the checkpoint was pre-trained on, or unigram to train one.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 2 ] || usage "prepare.sh OUTPUT TOKENIZER [--local TRAIN VALID TEST]"
prepare_summaries cnn_dailymail "$@" --oracle
