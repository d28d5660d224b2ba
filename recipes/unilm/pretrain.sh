#!/usr/bin/env bash
# pretrain.sh debug|base|large DATA SAVE [options of fairseq-train]: UniLM's pre-training (section 2.4) on a folder of prepare.sh.
#
# A third of the examples bidirectional with next-sentence prediction, a third sequence-to-sequence, a sixth each left-to-right
# and right-to-left; 15 % hidden; 330 sequences of 512 tokens per update, 770,000 updates, Adam (0.9, 0.999), rate 3e-5 after
# 40,000 updates of warm-up, then linear to 0. The paper starts from BERT-large; INIT=checkpoint.pt starts from a checkpoint
# of this library, without it training starts from nothing and wants a higher rate (LR=1e-4).
# The debug size shows in seconds that the script runs; it trains nothing.
source "$(dirname "${BASH_SOURCE[0]}")/../common/pretrain.sh"
[ $# -ge 3 ] || usage "pretrain.sh debug|base|large DATA SAVE [options of fairseq-train]"
size=$1 data=$2 save=$3
shift 3
require_size "$size" debug base large
arch=unified_lm_${size/debug/tiny}
start=()
[ -z "${INIT:-}" ] || start=(--finetune-from-model "$INIT")
if [ "$size" = debug ]; then
    set -- "$@" --max-update 4 --warmup-updates 1 --total-num-update 4 --batch-size 2 --update-freq 1 \
        --tokens-per-sample 64 --log-interval 1
fi
# shellcheck disable=SC2046
pretrain "$data" "$save" --arch "$arch" --objectives 'bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1' \
    --tokens-per-sample 512 --max-positions 512 --dropout 0.1 --attention-dropout 0.1 \
    "${ADAM[@]}" --lr "${LR:-3e-5}" --warmup-updates 40000 --total-num-update 770000 --max-update 770000 \
    ${start[@]+"${start[@]}"} $(batch_options 330) "$@"
