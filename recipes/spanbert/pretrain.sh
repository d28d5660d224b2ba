#!/usr/bin/env bash
# pretrain.sh debug|base|large DATA SAVE [options of fairseq-train]: SpanBERT's pre-training [SpanBERT, sec. 4.2].
#
# One sequence of up to 512 tokens, spans of words hidden, masked language model and span boundary objective; 2,400,000
# updates of 256 sequences.
source "$(dirname "${BASH_SOURCE[0]}")/../common/pretrain.sh"
[ $# -ge 3 ] || usage "pretrain.sh debug|base|large DATA SAVE [options of fairseq-train]"
size=$1 data=$2 save=$3
shift 3
require_size "$size" debug base large
if [ "$size" = debug ]; then
    set -- "${DEBUG_OPTIONS[@]}" --lr 2e-3 --warmup-updates 5 --initializer-range 0.05 \
        --tokens-per-sample 64 --total-num-update 60 --max-update 60 "$@"
fi
# shellcheck disable=SC2046
pretrain "$data" "$save" --arch "spanbert_${size/debug/tiny}" --objectives spanbert --tokens-per-sample 512 --max-positions 512 \
    --dropout 0.1 --attention-dropout 0.1 "${ADAM[@]}" --adam-eps 1e-8 --weight-decay 0.1 --decay-biases-and-norms --lr 1e-4 \
    --warmup-updates 10000 --total-num-update 2400000 --max-update 2400000 $(batch_options 256) "$@"
