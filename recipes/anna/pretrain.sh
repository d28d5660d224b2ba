#!/usr/bin/env bash
# pretrain.sh debug|base|large DATA SAVE [options of fairseq-train]: ANNA's pre-training (Jun et al. 2022).
#
# Noun phrases, words and tokens hidden; layers of self-attention, neighbor-aware attention and feed-forward; 1,000,000 updates of
# 1024 (base) or 2048 (large) sequences of 512.
source "$(dirname "${BASH_SOURCE[0]}")/../common/pretrain.sh"
[ $# -ge 3 ] || usage "pretrain.sh debug|base|large DATA SAVE [options of fairseq-train]"
size=$1 data=$2 save=$3
shift 3
require_size "$size" debug base large
batch=1024 rate=1e-4
[ "$size" != large ] || batch=2048 rate=2e-4
if [ "$size" = debug ]; then
    set -- "${DEBUG_OPTIONS[@]}" --lr 2e-3 --warmup-updates 5 --initializer-range 0.05 \
        --tokens-per-sample 64 --total-num-update 60 --max-update 60 "$@"
fi
# shellcheck disable=SC2046
pretrain "$data" "$save" --arch "anna_${size/debug/tiny}" --objectives anna --tokens-per-sample 512 --max-positions 512 \
    --dropout 0.1 --attention-dropout 0.1 "${ADAM[@]}" --lr "$rate" --warmup-updates 10000 \
    --total-num-update 1000000 --max-update 1000000 $(batch_options "$batch") "$@"
