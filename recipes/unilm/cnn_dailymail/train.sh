#!/usr/bin/env bash
# train.sh OUTPUT CHECKPOINT|none: fine-tune on OUTPUT/data into OUTPUT/model.
# UniLM, section 3.1: 30 epochs, batch 32, 70 % of the target hidden, smoothing 0.1, 768 positions, the first 640 tokens of
# the article, and the extractive loss beside; the rate (3e-5) and its limit of 20 sentences are the released code's.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 2 ] || usage "train.sh OUTPUT CHECKPOINT|none [options of fairseq-train]"
output=$1 checkpoint=$2
shift 2
arch=${ARCH:-unified_lm_large}
[ "$DEBUG" = 1 ] && arch=unified_lm_tiny
pairs=$(wc -l < "$output/text/train.jsonl")
updates=$((30 * pairs / 32))
# shellcheck disable=SC2046
finetune "$output/data" "$output/model" "$checkpoint" --arch "$arch" --tokens-per-sample 768 --max-positions 768 \
    --max-source 640 --max-target 125 --objectives 'target_cloze(mask_probability=0.7,extractive=20)' --lr 3e-5 \
    --warmup-updates $((updates / 10)) --total-num-update "$updates" --max-epoch 30 --no-epoch-checkpoints \
    $(batch_options 32) "$@"
