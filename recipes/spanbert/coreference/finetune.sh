#!/usr/bin/env bash
# finetune.sh debug|bert_base|bert_large|spanbert_base|spanbert_large DATA CHECKPOINT OUTPUT [options of unified finetune]
#
# Coreference (Joshi et al. 2019 and 2020) with the settings of mandarjoshi90/coref for a model of that size. DATA is a folder
# with train and dev files in the format of CoNLL-2012.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
sizes="debug|bert_base|bert_large|spanbert_base|spanbert_large"
[ $# -ge 4 ] || usage "finetune.sh $sizes DATA CHECKPOINT OUTPUT [options of unified finetune]"
size=$1 data=$2 checkpoint=$3 output=$4
shift 4
case $size in
spanbert_base) ;;
bert_base | bert_large | spanbert_large) set -- --system "$size" "$@" ;;
debug)
    set -- --epochs 3 --max-length 32 --lr 5e-3 --head-lr 1e-2 \
        --head 'coreference(max_segments=2,hidden=64,features=8,dropout=0.0,max_width=2,spans_per_word=0.8)' \
        "${DEBUG_TRAINING[@]}" "$@"
    ;;
*) usage "finetune.sh $sizes DATA CHECKPOINT OUTPUT [options of unified finetune], got '$size'" ;;
esac
run unified finetune conll2012 --data "$data" --model "$checkpoint" --output "$output" "$@"

# The official rules, on the file that is handed in; and the baseline.
for key in "$data"/dev.conll* "$data"/dev.english.v4_gold_conll*; do
    [ -f "$key" ] || continue
    run unified score coref "$key" "$output/valid.response.conll"
    run python "$ROOT/recipes/spanbert/coreference/baseline.py" "$key"
done
