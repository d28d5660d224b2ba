#!/usr/bin/env bash
# pretrain.sh debug|base|large DATA SAVE [options of fairseq-train]: XLNet's pre-training [XLNet, app. A.4].
#
# Permutation language modelling in parallel streams with a memory of 384 tokens: rows of 512 of which the first 256 go into
# the memory, one token in six predicted, half of the streams backwards; 500,000 updates of 8192 rows (large) or 2048 (base).
source "$(dirname "${BASH_SOURCE[0]}")/../common/pretrain.sh"
[ $# -ge 3 ] || usage "pretrain.sh debug|base|large DATA SAVE [options of fairseq-train]"
size=$1 data=$2 save=$3
shift 3
require_size "$size" debug base large
batch=2048
[ "$size" != large ] || batch=8192
if [ "$size" = debug ]; then
    set -- "${DEBUG_OPTIONS[@]}" --lr 2e-3 --warmup-updates 5 --initializer-range 0.05 \
        --tokens-per-sample 64 --memory 48 --total-num-update 60 --max-update 60 "$@"
fi
# shellcheck disable=SC2046
pretrain "$data" "$save" --arch "xlnet_${size/debug/tiny}" --objectives xlnet --tokens-per-sample 512 --memory 384 \
    --activation gelu_tanh --dropout 0.1 --attention-dropout 0.1 --inner-dropout 0.1 "${ADAM[@]}" --lr 4e-4 \
    --warmup-updates 40000 --total-num-update 500000 --max-update 500000 $(batch_options "$batch") "$@"
