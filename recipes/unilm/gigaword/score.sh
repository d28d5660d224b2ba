#!/usr/bin/env bash
# score.sh OUTPUT: ROUGE-1/2/L of rouge-score. UniLM's figures come from ROUGE-1.5.5, so compare with that in mind.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -eq 1 ] || usage "score.sh OUTPUT"
unified score generation "$1/generated/generate-test.txt" --references "$1/text/test.references.txt" \
    --output "$1/scores.json"
