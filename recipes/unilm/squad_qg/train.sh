#!/usr/bin/env bash
# train.sh OUTPUT CHECKPOINT|none: fine-tune on OUTPUT/data into OUTPUT/model.
# UniLM, section 3.4: 10 epochs, batch 32, 70 % of the target hidden, smoothing 0.1; rate and row length are the released
# code's (2e-5, 512).
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 2 ] || usage "train.sh OUTPUT CHECKPOINT|none [options of fairseq-train]"
output=$1 checkpoint=$2
shift 2
arch=${ARCH:-unified_lm_large}
[ "$DEBUG" = 1 ] && arch=unified_lm_tiny
pairs=$(wc -l < "$output/text/train.jsonl")
updates=$((10 * pairs / 32))
# shellcheck disable=SC2046
finetune "$output/data" "$output/model" "$checkpoint" --arch "$arch" --tokens-per-sample 512 \
    --max-target 48 --lr 2e-5 --warmup-updates $((updates / 10)) --total-num-update "$updates" --max-epoch 10 \
    --no-epoch-checkpoints $(batch_options 32) "$@"
