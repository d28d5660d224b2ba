#!/usr/bin/env bash
# score.sh OUTPUT [DEV]: exact match and F1 by CoQA's rules, by domain. DEV is CoQA's dev file; default: the downloaded one.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 1 ] && [ $# -le 2 ] || usage "score.sh OUTPUT [DEV]"
output=$1 dev=${2:-$1/text/downloads/coqa-dev-v1.0.json}
python "$RECIPES/coqa/predictions.py" "$output/text/test.jsonl" "$output/generated/generate-test.txt" \
    "$output/predictions.json"
unified score coqa "$dev" "$output/predictions.json" --output "$output/scores.json"
