#!/usr/bin/env bash
# generate.sh OUTPUT: headlines of OUTPUT/data's test part into OUTPUT/generated.
# Released code: beam 5, 32 tokens at most, no trigram twice but full stops, length penalty 0.6 of its own form (LENPEN=0 on
# the subset).
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 1 ] || usage "generate.sh OUTPUT [options of fairseq-generate]"
output=$1
shift
exempt=$(python "$ROOT/recipes/common/sources.py" "$output/data" '.')
generate "$output/data" "$output/model" "$output/generated" --max-source 125 --max-target 64 --beam 5 --max-len-b 32 \
    --no-repeat-ngram-size 3 --no-repeat-ngram-ignore "$exempt" --length-penalty unilm --lenpen "${LENPEN:-0.6}" "$@"
