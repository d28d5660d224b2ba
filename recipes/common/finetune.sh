# Sourced by the recipes of `unified finetune`: the sizes that all of them have.

source "$(dirname "${BASH_SOURCE[0]}")/machine.sh"

# The debug size: what its scripts put behind a paper's settings; a script may have its own.
DEBUG_TRAINING=(--validations 1 --fairseq '--dropout 0 --attention-dropout 0 --log-format json --num-workers 0')
DEBUG_TASK_OPTIONS=(--epochs 6 --batch-size 16 --max-length 32 --lr 2e-3 "${DEBUG_TRAINING[@]}")
DEBUG_ANSWER_OPTIONS=(--epochs 20 --batch-size 16 --max-length 64 --lr 2e-3 "${DEBUG_TRAINING[@]}")

# finetune_task DEBUG_TASK TASKS OPTIONS ARGUMENTS...: `unified finetune` of one of TASKS, or of DEBUG_TASK at its debug size.
# ARGUMENTS are those of the script: debug|TASK DATA CHECKPOINT OUTPUT [options]. PREFIX stands before the tasks' names.
PREFIX=
finetune_task() {
    local debug_task=$1 tasks=$2 options=$3
    shift 3
    if [ $# -lt 4 ] || [[ " debug $tasks " != *" $1 "* ]]; then
        usage "finetune.sh debug|${tasks// /|} DATA CHECKPOINT OUTPUT [options of unified finetune]"
    fi
    local task=$1 data=$2 checkpoint=$3 output=$4
    shift 4
    if [ "$task" = debug ]; then
        task=$debug_task
        set -- "${DEBUG_TASK_OPTIONS[@]}" "$@"
    fi
    # shellcheck disable=SC2086
    run unified finetune "$PREFIX$task" --data "$data" --model "$checkpoint" --output "$output" $options \
        ${ROWS:+--micro-batch "$ROWS"} "$@"
}

# finetune_squad VERSIONS OPTIONS ARGUMENTS...: SQuAD 1.1 or 2.0, and the official scores. ARGUMENTS: debug|VERSION DATA CHECKPOINT
# OUTPUT [options]. DATA is a folder with train-v1.1.json and dev-v1.1.json, or those of 2.0.
finetune_squad() {
    PREFIX=squad DEBUG_TASK_OPTIONS=("${DEBUG_ANSWER_OPTIONS[@]}")
    finetune_task 2.0 "$@"

    # The official rules, on the files that are handed in. Of 2.0 also the best threshold, searched with the answers if there is one.
    local version=${3/debug/2.0} data=$4 output=$6 dev
    for dev in "$data"/dev-v"$version"*.json*; do
        run unified score squad "$dev" "$output/valid.predictions.json" --rules "$version"
        [ "$version" = 1.1 ] || run unified score squad "$dev" "$output/valid.best_non_null.json" --rules 2.0 \
            --na-prob "$output/valid.na_prob.json"
    done
}
