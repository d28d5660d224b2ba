#!/usr/bin/env bash
# tune.sh OUTPUT [options of fairseq-generate]: length penalty and least length that suit the validation part best.
# Decodes it once, unless that is done, and keeps all hypotheses of the beam, which every setting ranks anew, as the released code's
# gen_seq_from_trace.py does.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 1 ] || usage "tune.sh OUTPUT [options of fairseq-generate]"
output=$1 decoded=$1/generated/generate-valid.txt
shift
[ -f "$decoded" ] || bash "$RECIPES/cnn_dailymail/generate.sh" "$output" --gen-subset valid --nbest 5 "$@"
unified tune-lengths "$decoded" --references "$output/text/valid.jsonl" --sentence-separator '|' --post-process cnndm \
    --plain-references --min-lengths 0 20 40 60 --output "$output/lengths.json"
