#!/usr/bin/env bash
# score.sh OUTPUT: BLEU-1..4 and ROUGE-L by the published rules (questions of one sentence are pooled).
#   --meteor                                METEOR too (pip install 'unified[meteor]')
#   --sources OUTPUT/text/test.sources.txt  pool questions of the same window and answer instead
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 1 ] || usage "score.sh OUTPUT [--meteor] [options of unified score question-generation]"
output=$1
shift
# Where the tokenizer is BERT's, generated text has its words, punctuation apart.
form=--penn-treebank
[ -f "$output/data/vocab.txt" ] && form=--bert-words
unified score question-generation "$output/generated/generate-test.txt" "$form" \
    --references "$output/text/test.references.txt" --sources "$output/text/test.sentences.txt" \
    --output "$output/scores.json" "$@"
