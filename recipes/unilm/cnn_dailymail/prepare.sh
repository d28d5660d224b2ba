#!/usr/bin/env bash
# prepare.sh OUTPUT TOKENIZER [options of prepare.py]: CNN/DailyMail -> OUTPUT/text -> OUTPUT/data.
# TOKENIZER is the folder the checkpoint was pre-trained on, or unigram to train one.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 2 ] || usage "prepare.sh OUTPUT TOKENIZER [--local TRAIN VALID TEST]"
output=$1 tokenizer=$2
shift 2
checked=()
[ -e "$tokenizer" ] && checked=(--tokenizer "$tokenizer")
python "$RECIPES/cnn_dailymail/prepare.py" "$output/text" ${checked[@]+"${checked[@]}"} "$@"
unified prepare "$output/text/train.jsonl" --valid "$output/text/valid.jsonl" --test "$output/text/test.jsonl" \
    --source-field source --target-field target --destination "$output/data" --tokenizer "$tokenizer" --overwrite
