#!/usr/bin/env bash
# pretrain.sh debug|base DATA SAVE [options of fairseq-train]: the pre-training of T5's comparisons [T5, sec. 3.1]
# with random spans, on one stack.
#
# 2^19 updates of 128 rows of 512 tokens; Adafactor, rate 0.01 for 10,000 updates and 1 / sqrt(update) afterwards.
source "$(dirname "${BASH_SOURCE[0]}")/../common/pretrain.sh"
[ $# -ge 3 ] || usage "pretrain.sh debug|base DATA SAVE [options of fairseq-train]"
size=$1 data=$2 save=$3
shift 3
require_size "$size" debug base
if [ "$size" = debug ]; then
    set -- "${DEBUG_OPTIONS[@]}" --initializer-range 0.05 --tokens-per-sample 64 --max-update 60 "$@"
fi
# shellcheck disable=SC2046
pretrain "$data" "$save" --arch "unified_lm_${size/debug/tiny}" --objectives random_spans --norm pre \
    --tokens-per-sample 512 --max-positions 512 --dropout 0.1 --attention-dropout 0.1 \
    --optimizer adafactor --scale-parameter --lr-scheduler inverse_sqrt --lr 0.01 --warmup-init-lr 0.01 \
    --warmup-updates 10000 --max-update 524288 $(batch_options 128) "$@"
