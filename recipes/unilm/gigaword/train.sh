#!/usr/bin/env bash
# train.sh OUTPUT CHECKPOINT|none: fine-tune on OUTPUT/data into OUTPUT/model.
# Released code of UniLM: batch 128, rate 3e-5 (1e-5 on the 10,000-pair subset: LR=1e-5), 192 tokens, 64 of them target,
# 70 % of the target hidden but at most 48 (64 on the subset), 30 epochs of which 10 suffice (EPOCHS).
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 2 ] || usage "train.sh OUTPUT CHECKPOINT|none [options of fairseq-train]"
output=$1 checkpoint=$2
shift 2
arch=${ARCH:-unified_lm_large}
[ "$DEBUG" = 1 ] && arch=unified_lm_tiny
epochs=${EPOCHS:-10}
pairs=$(wc -l < "$output/text/train.jsonl")
updates=$((epochs * pairs / 128))
# shellcheck disable=SC2046
finetune "$output/data" "$output/model" "$checkpoint" --arch "$arch" --tokens-per-sample 192 --max-source 125 \
    --max-target 64 --objectives 'target_cloze(mask_probability=0.7,max_predictions=48)' --lr "${LR:-3e-5}" \
    --warmup-updates $((updates / 10)) --total-num-update "$updates" --max-epoch "$epochs" --no-epoch-checkpoints \
    $(batch_options 128) "$@"
