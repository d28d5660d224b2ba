#!/usr/bin/env bash
# prepare.sh debug|base|large OUTPUT FILE... [options of unified prepare]: sentences in BERT's cased WordPieces.
source "$(dirname "${BASH_SOURCE[0]}")/../common/prepare.sh"
[ $# -ge 3 ] || usage "prepare.sh debug|base|large OUTPUT FILE... [options of unified prepare]"
size=$1 output=$2
shift 2
vocabulary=28996
[ "$size" != debug ] || vocabulary=400
# short_sentences=1 drops nothing: it divides paragraphs into sentences, between which the two segments are cut.
# shellcheck disable=SC2046
prepare "$size" "$output" --clean short_sentences=1 $(tokenizer_options wordpiece "$vocabulary") "$@"
