#!/usr/bin/env bash
# generate.sh OUTPUT: summaries of OUTPUT/data's test part into OUTPUT/generated.
# Section 3.1: beam 5, no trigram twice; the released code: 128 tokens at most (125 fit beside 640 here), length penalty 1.0
# of its own form, full stops and the separator exempt from blocking.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 1 ] || usage "generate.sh OUTPUT [options of fairseq-generate]"
output=$1
shift
exempt=$(python "$ROOT/recipes/common/sources.py" "$output/data" '|' '.')
generate "$output/data" "$output/model" "$output/generated" --tokens-per-sample 768 --max-source 640 --max-target 125 \
    --beam 5 --max-len-b 125 --no-repeat-ngram-size 3 --no-repeat-ngram-ignore "$exempt" --length-penalty unilm \
    --lenpen 1.0 "$@"
