#!/usr/bin/env bash
# generate.sh OUTPUT: answers for OUTPUT/data's test part into OUTPUT/generated (section 3.4: beam 3).
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 1 ] || usage "generate.sh OUTPUT [options of fairseq-generate]"
output=$1
shift
generate "$output/data" "$output/model" "$output/generated" --beam 3 --max-len-b 39 --max-target 39 "$@"
