#!/usr/bin/env bash
# pretrain.sh debug|base|large DATA SAVE [options of fairseq-train]: BERT's pre-training [BERT, app. A.2].
#
# 1,000,000 updates of 256 sequences: the first 90 % in rows of 128 into SAVE/short, the rest in rows of 512 into SAVE/long.
source "$(dirname "${BASH_SOURCE[0]}")/../common/pretrain.sh"
[ $# -ge 3 ] || usage "pretrain.sh debug|base|large DATA SAVE [options of fairseq-train]"
size=$1 data=$2 save=$3
shift 3
require_size "$size" debug base large
short=128 long=512 switch=900000 updates=1000000
if [ "$size" = debug ]; then
    short=48 long=96 switch=60 updates=75
    set -- "${DEBUG_OPTIONS[@]}" --lr 2e-3 --warmup-updates 5 --initializer-range 0.05 "$@"
fi
# Both parts are one schedule. shellcheck disable=SC2046
options=(--arch "bert_${size/debug/tiny}" --objectives bert --activation gelu_tanh --max-positions 512 --dropout 0.1 --attention-dropout 0.1
    "${ADAM[@]}" --lr 1e-4 --warmup-updates 10000 --total-num-update "$updates" $(batch_options 256) "$@")
start=()
if [ ! -f "$save/long/checkpoint_last.pt" ]; then # else the second part was interrupted, and goes on
    pretrain "$data" "$save/short" --tokens-per-sample "$short" --max-update "$switch" "${options[@]}"
    # Other rows are another data stream.
    start=(--restore-file "$save/short/checkpoint_last.pt" --reset-dataloader --reset-meters)
fi
pretrain "$data" "$save/long" --tokens-per-sample "$long" --max-update "$updates" ${start[@]+"${start[@]}"} "${options[@]}"
