#!/usr/bin/env bash
# score.sh OUTPUT [PART]: ROUGE-1/2/L of rouge-score behind UniLM's clean-up; its published figures are of ROUGE-1.5.5.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -eq 1 ] || [ $# -eq 2 ] || usage "score.sh OUTPUT [PART]"
part=${2:-test}
unified score generation "$1/generated/generate-$part.txt" --references "$1/text/$part.jsonl" --post-process gigaword \
    --output "$1/scores.json"
