#!/usr/bin/env bash
# train.sh OUTPUT CHECKPOINT|none: fine-tune on OUTPUT/data into OUTPUT/model.
# S3 has no XSum; rate 7e-5, batch 64, 32,000 updates of which 500 warm up, and 464 + 48 places, special symbols
# included, are those of s2s-ft, the later code of the same authors. The objective is S3's.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 2 ] || usage "train.sh OUTPUT CHECKPOINT|none [options of fairseq-train]"
output=$1 checkpoint=$2
shift 2
arch=${ARCH:-unified_lm_large}
[ "$DEBUG" = 1 ] && arch=unified_lm_tiny
# shellcheck disable=SC2046
finetune "$output/data" "$output/model" "$checkpoint" --arch "$arch" --tokens-per-sample 512 --max-source 462 \
    --max-target 47 --lr 7e-5 --warmup-updates 500 --total-num-update 32000 --max-update 32000 \
    --no-epoch-checkpoints $(batch_options 64) "$@"
