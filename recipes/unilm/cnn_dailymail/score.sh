#!/usr/bin/env bash
# score.sh OUTPUT [PART]: ROUGE-1/2 and summary-level ROUGE-L of rouge-score behind UniLM's clean-up, which cuts at 70 words.
# Its published figures are of ROUGE-1.5.5 and of references tokenized by CoreNLP, so compare with that in mind.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -eq 1 ] || [ $# -eq 2 ] || usage "score.sh OUTPUT [PART]"
part=${2:-test}
unified score generation "$1/generated/generate-$part.txt" --references "$1/text/$part.jsonl" --sentence-separator '|' \
    --post-process cnndm --plain-references --output "$1/scores.json"
