#!/usr/bin/env bash
# score.sh OUTPUT: BLEU-1..4 and ROUGE-L by the published rules (questions of one sentence are pooled). No METEOR.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -eq 1 ] || usage "score.sh OUTPUT"
unified score question-generation "$1/generated/generate-test.txt" --penn-treebank \
    --references "$1/text/test.references.txt" --sources "$1/text/test.sentences.txt" --output "$1/scores.json"
