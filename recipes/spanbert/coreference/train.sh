#!/usr/bin/env bash
# train.sh debug|bert_base|bert_large|spanbert_base|spanbert_large DATA CHECKPOINT|none SAVE [options of fairseq-train]
#
# Coreference with the settings of mandarjoshi90/coref (Joshi et al. 2019 and 2020): independent segments, 20 epochs of one
# document an update, in single precision.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/machine.sh"
[ $# -ge 4 ] || usage "train.sh debug|bert_base|bert_large|spanbert_base|spanbert_large DATA CHECKPOINT|none SAVE [options of fairseq-train]"
size=$1 data=$2 checkpoint=$3 save=$4
shift 4
# Tokens of a segment, segments of a document in training, rate of the Transformer, rate of the head.
case $size in
    bert_base)      length=128 segments=11 lr=1e-5 head_lr=2e-4 ;;
    bert_large)     length=384 segments=3  lr=1e-5 head_lr=2e-4 ;;
    spanbert_base)  length=384 segments=3  lr=2e-5 head_lr=1e-4 ;;
    spanbert_large) length=512 segments=3  lr=1e-5 head_lr=3e-4 ;;
    debug)          length=32  segments=2  lr=8e-3 head_lr=1e-2 ;;
    *) usage "train.sh: no size '$size'; there are debug, bert_base, bert_large, spanbert_base, spanbert_large" ;;
esac
epochs=20 head="coreference(max_segments=$segments)"
if [ "$size" = debug ]; then
    epochs=2 head="coreference(max_segments=$segments,hidden=64,features=8,dropout=0.0,max_width=2,spans_per_word=0.8)"
    set -- --layers 1 --width 16 --initializer-range 0.05 --dropout 0 --attention-dropout 0 --num-workers 0 \
        --log-format json "$@"
fi
[ "$checkpoint" = none ] || set -- --finetune-from-model "$checkpoint" "$@"
[ "$(cards)" -gt 0 ] || set -- --cpu "$@"
documents=$(wc -l < "$data/train.jsonl")
updates=$((epochs * documents))
run fairseq-train "$data" --user-dir "$PLUGINS" --task unified_understanding --head "$head" --criterion unified_understanding \
    --arch "${size/debug/bert_tiny}" --tokens-per-sample "$length" --batch-size 1 --batch-size-valid 1 \
    --optimizer unified_adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-6 --weight-decay 0.01 --clip-norm 1.0 \
    --lr "$lr" --head-lr "$head_lr" --lr-scheduler polynomial_decay --warmup-updates $((updates / 10)) \
    --total-num-update "$updates" --max-epoch "$epochs" --best-checkpoint-metric average_f1 \
    --maximize-best-checkpoint-metric --no-epoch-checkpoints --log-format simple --log-interval 100 --seed 1 \
    --save-dir "$save" "$@"
