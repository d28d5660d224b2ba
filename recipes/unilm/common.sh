# Sourced by the scripts of this folder: what fine-tuning and generation share. The machine's options: ../common/machine.sh.
#
#   DEBUG=1       the smallest model, a few updates, a few tokens: shows in seconds that a script runs, trains nothing

source "$(dirname "${BASH_SOURCE[0]}")/../common/machine.sh"
RECIPES=$ROOT/recipes/unilm
DEBUG=${DEBUG:-0}

# prepare_summaries DATASET OUTPUT TOKENIZER OPTIONS...: OUTPUT/text -> OUTPUT/data; options of summaries.py.
prepare_summaries() {
    local name=$1 output=$2 tokenizer=$3 oracle=() checked=()
    shift 3
    [[ " $* " == *" --oracle "* ]] && oracle=(--oracle)
    [[ $DEBUG = 1 && " $* " != *" --local "* ]] && set -- "$@" --debug
    [ -e "$tokenizer" ] && checked=(--tokenizer "$tokenizer")
    python "$RECIPES/summaries.py" "$name" "$output/text" ${checked[@]+"${checked[@]}"} "$@"
    unified prepare "$output/text/train.jsonl" --valid "$output/text/valid.jsonl" --test "$output/text/test.jsonl" \
        --source-field source --target-field target ${oracle[@]+"${oracle[@]}"} \
        --destination "$output/data" --tokenizer "$tokenizer" --overwrite
}

# finetune DATA MODEL CHECKPOINT OPTIONS...: fairseq-train with what the paper's fine-tunings share (section 2.5).
finetune() {
    local data=$1 model=$2 checkpoint=$3
    shift 3
    local start=()
    [ "$checkpoint" = none ] || start=(--finetune-from-model "$checkpoint")
    if [ "$DEBUG" = 1 ]; then
        set -- "$@" --max-update 4 --warmup-updates 1 --total-num-update 4 --batch-size 4 --update-freq 1
    fi
    # shellcheck disable=SC2046
    fairseq-train "$data" --user-dir "$PLUGINS" --task unified_lm --criterion unified_lm --padded \
        --objectives 'target_cloze(mask_probability=0.7)' --label-smoothing 0.1 \
        --optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-6 --weight-decay 0.01 --clip-norm 1.0 \
        --lr-scheduler polynomial_decay --log-format simple --log-interval 100 --seed 1 \
        --save-dir "$model" ${start[@]+"${start[@]}"} $(machine_options) "$@"
}

# generate DATA MODEL OUTPUT OPTIONS...: fairseq-generate on the test part, best checkpoint where there is one.
generate() {
    local data=$1 model=$2 output=$3 checkpoint
    shift 3
    [ "$DEBUG" = 1 ] && set -- "$@" --max-len-b 8
    checkpoint=$model/checkpoint_best.pt
    [ -f "$checkpoint" ] || checkpoint=$model/checkpoint_last.pt
    # shellcheck disable=SC2046
    fairseq-generate "$data" --user-dir "$PLUGINS" --task unified_lm --path "$checkpoint" \
        --gen-subset test --batch-size 32 --results-path "$output" $(machine_options) "$@"
}
