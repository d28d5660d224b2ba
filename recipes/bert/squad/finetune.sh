#!/usr/bin/env bash
# finetune.sh debug|1.1|2.0 DATA CHECKPOINT OUTPUT [options of unified finetune]: SQuAD (Devlin et al. 2019, 4.2 and 4.3).
#
# DATA is a folder with train-v1.1.json and dev-v1.1.json, or those of 2.0. The published settings are those of
# `unified finetune`: 3 epochs of 32 sequences for 1.1, 2 of 48 for 2.0, both with 384 tokens and a rate of 5e-5.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
[ $# -ge 4 ] || usage "finetune.sh debug|1.1|2.0 DATA CHECKPOINT OUTPUT [options of unified finetune]"
version=$1 data=$2 checkpoint=$3 output=$4
shift 4
case $version in
1.1 | 2.0) ;;
debug)
    version=2.0
    set -- --epochs 3 --batch-size 16 --longest 80 --learning-rate 1e-3 --head 'span(stride=32)' \
        "${DEBUG_FAIRSEQ[@]}" "$@"
    ;;
*) usage "finetune.sh debug|1.1|2.0 DATA CHECKPOINT OUTPUT [options of unified finetune], got '$version'" ;;
esac
run unified finetune "squad$version" --data "$data" --init "$checkpoint" --output "$output" "$@"

# The official rules, on the files that are handed in. Of 2.0 also the best threshold, searched with the answers if there is one.
for dev in "$data"/dev-v"$version"*.json*; do
    run unified score squad "$dev" "$output/valid.predictions.json" --rules "$version"
    [ "$version" = 1.1 ] || run unified score squad "$dev" "$output/valid.best_non_null.json" --rules 2.0 \
        --na-prob "$output/valid.na_prob.json"
done
