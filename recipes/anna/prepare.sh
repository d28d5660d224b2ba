#!/usr/bin/env bash
# prepare.sh debug|base|large OUTPUT FILE... [options of unified prepare]: cleaned chunks of 300 words in ANNA's vocabulary, with
# noun phrases (and what the ablations read: entities, parts of speech) that a spaCy pipeline found.
#
#   SPACY         the pipeline (default en_core_web_sm); the debug size makes its own, see ../common/debug_pipeline.py
source "$(dirname "${BASH_SOURCE[0]}")/../common/prepare.sh"
[ $# -ge 3 ] || usage "prepare.sh debug|base|large OUTPUT FILE... [options of unified prepare]"
size=$1 output=$2
shift 2
vocabulary=127490
spacy=(--spacy "${SPACY:-en_core_web_sm}")
if [ "$size" = debug ]; then
    vocabulary=280
    spacy=(--spacy "$output.pipeline" --spacy-code debug_pipeline)
    export PYTHONPATH="$ROOT/recipes/common:$PYTHONPATH"
    run python "$ROOT/recipes/common/debug_pipeline.py" "$output.pipeline"
fi
# shellcheck disable=SC2046
prepare "$size" "$output" --clean anna --annotate noun_phrases,entities,parts_of_speech "${spacy[@]}" \
    $(tokenizer_options anna "$vocabulary") "$@"
