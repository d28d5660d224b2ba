#!/usr/bin/env bash
# tune.sh OUTPUT [options of unified generate]: length penalty and least length that suit CNN/DailyMail's validation split best.
#
# OUTPUT is a folder of recipes/finetune.py. Decodes that split once, unless that is done, and keeps all hypotheses of the beam, which
# every setting ranks anew, as the released code's gen_seq_from_trace.py does.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/machine.sh"
[ $# -ge 1 ] || usage "tune.sh OUTPUT [options of unified generate]"
output=$1 decoded=$1/nbest.valid.txt
shift
exempt=$(python "$ROOT/recipes/common/sources.py" "$output/data" '|' '.')
# shellcheck disable=SC2086
[ -f "$decoded" ] || unified generate "$output/data" --model "$output" --gen-subset valid --output "$decoded" \
    --beam 5 --nbest 5 --no-repeat-ngram-size 3 --no-repeat-ngram-ignore $exempt --length-penalty unilm "$@"
unified tune-lengths "$decoded" --references "$output/items/valid.jsonl" --sentence-separator '|' --post-process cnndm \
    --plain-references --min-lengths 0 20 40 60 --output "$output/lengths.json" --overwrite
