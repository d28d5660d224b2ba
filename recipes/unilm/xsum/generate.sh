#!/usr/bin/env bash
# generate.sh OUTPUT: summaries of OUTPUT/data's test part into OUTPUT/generated.
# s2s-ft: beam 5, 48 places; no trigram twice. Its later model decodes with beam 8 and length penalty 0.9 (--beam 8 --lenpen 0.9).
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 1 ] || usage "generate.sh OUTPUT [options of fairseq-generate]"
output=$1
shift
exempt=$(python "$ROOT/recipes/common/sources.py" "$output/data" '.')
generate "$output/data" "$output/model" "$output/generated" --max-source 462 --max-target 47 --beam 5 --max-len-b 47 \
    --no-repeat-ngram-size 3 --no-repeat-ngram-ignore "$exempt" --length-penalty unilm --lenpen 0 "$@"
