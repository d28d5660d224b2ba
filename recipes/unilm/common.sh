# Sourced by the scripts of this folder: where things are, and what every training call shares.
#
#   DEBUG=1       the smallest model and a few updates: shows in seconds that a script runs, trains nothing
#   PRECISION     fp16 (default), bf16 or amp on GPUs; ignored without one
#   ROWS          sequences per card and micro-batch; the update frequency follows from the paper's batch size
#   NODES         machines that run the same command (default 1), see launch.md
#   CARDS         CUDA cards to count on (default: what torch sees); 0 trains on the CPU

set -euo pipefail

RECIPES=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$RECIPES/../.." && pwd)
[ -d "$ROOT/.venv/bin" ] && PATH="$ROOT/.venv/bin:$PATH"
PLUGINS=$ROOT/fairseq_plugins
export PYTHONUNBUFFERED=1 PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"

DEBUG=${DEBUG:-0}
PRECISION=${PRECISION:-fp16}
NODES=${NODES:-1}

# Number of CUDA cards to count on.
cards() {
    [ -n "${CARDS:-}" ] && echo "$CARDS" || python -c "import torch; print(torch.cuda.device_count())"
}

# Options that depend on the machine alone.
machine_options() {
    if [ "$(cards)" -gt 0 ]; then echo "--$PRECISION"; else echo "--cpu"; fi
}

# batch_options SEQUENCES: --batch-size and --update-freq so that one update sees about SEQUENCES sequences.
batch_options() {
    local sequences=$1 count rows freq
    count=$(cards)
    [ "$count" -gt 0 ] || count=1
    count=$((count * NODES))
    rows=${ROWS:-8}
    [ "$rows" -gt $((sequences / count)) ] && rows=$((sequences / count))
    [ "$rows" -gt 0 ] || rows=1
    freq=$(((sequences + count * rows / 2) / (count * rows)))
    [ "$freq" -gt 0 ] || freq=1
    echo "one update: $count card(s) x $rows rows x $freq micro-batches = $((count * rows * freq)) of $sequences sequences" >&2
    echo "--batch-size $rows --update-freq $freq"
}

# usage TEXT: end with what the script expects.
usage() {
    echo "usage: $1" >&2
    exit 2
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
    checkpoint=$model/checkpoint_best.pt
    [ -f "$checkpoint" ] || checkpoint=$model/checkpoint_last.pt
    # shellcheck disable=SC2046
    fairseq-generate "$data" --user-dir "$PLUGINS" --task unified_lm --path "$checkpoint" \
        --gen-subset test --batch-size 32 --results-path "$output" $(machine_options) "$@"
}
