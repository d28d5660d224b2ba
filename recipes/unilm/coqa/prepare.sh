#!/usr/bin/env bash
# prepare.sh OUTPUT TOKENIZER [options of prepare.py]: CoQA -> OUTPUT/text -> OUTPUT/data.
# TOKENIZER is the folder the checkpoint was pre-trained on, or unigram to train one (words are counted then).
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 2 ] || usage "prepare.sh OUTPUT TOKENIZER [--local TRAIN... DEV]"
output=$1 tokenizer=$2
shift 2
counted=()
[ -e "$tokenizer" ] && counted=(--tokenizer "$tokenizer")
python "$RECIPES/coqa/prepare.py" "$output/text" ${counted[@]+"${counted[@]}"} "$@"
unified prepare "$output/text/train.jsonl" --valid "$output/text/valid.jsonl" --test "$output/text/test.jsonl" \
    --source-field source --target-field target --destination "$output/data" --tokenizer "$tokenizer" --overwrite
