# Sourced by the pretrain.sh of every system: what their calls of fairseq-train share.

source "$(dirname "${BASH_SOURCE[0]}")/machine.sh"

# Adam and its schedule as BERT has them, and every system after it but T5; a script puts what differs behind.
ADAM=(--optimizer unified_adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-6 --weight-decay 0.01 --clip-norm 1.0
    --lr-scheduler polynomial_decay)

# The debug size: what its scripts put behind a paper's options. Dropout is off, because what it drops differs between
# processors, and golden.py compares losses.
DEBUG_OPTIONS=(--batch-size 16 --update-freq 1 --dropout 0 --attention-dropout 0 --inner-dropout 0
    --log-format json --log-interval 5 --num-workers 0)

# require_size SIZE SIZES... : end where SIZE is none of SIZES.
require_size() {
    local size=$1
    shift
    [[ " $* " == *" $size "* ]] || usage "pretrain.sh $(IFS='|'; echo "$*") DATA SAVE [options of fairseq-train], got '$size'"
}

# pretrain DATA SAVE OPTIONS...: fairseq-train with what all pre-trainings share.
pretrain() {
    local data=$1 save=$2
    shift 2
    # shellcheck disable=SC2046
    run fairseq-train "$data" --user-dir "$PLUGINS" --task unified_lm --criterion unified_lm \
        --save-interval-updates 10000 --keep-interval-updates 3 --no-epoch-checkpoints \
        --log-format simple --log-interval 100 --seed 1 --save-dir "$save" $(machine_options) "$@"
}
