# Sourced by the recipes' scripts: where things are, and what depends on the machine alone.
#
#   PRECISION     fp16 (default), bf16 or amp on GPUs; ignored without one
#   ROWS          sequences per card and micro-batch; the update frequency follows from the paper's batch size
#   NODES         machines that run the same command (default 1), see docs/how-to/many_gpus.md
#   CARDS         CUDA cards to count on (default: what torch sees); 0 trains on the CPU
#   PRINT=1       print the commands of pre-training and preparation instead of running them

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# The checkout's own environment, where no other that has the library is active.
command -v unified > /dev/null || PATH="$ROOT/.venv/bin:$PATH"
PLUGINS=$ROOT/fairseq_plugins
export PYTHONUNBUFFERED=1 PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"

PRECISION=${PRECISION:-fp16}
NODES=${NODES:-1}

# Number of CUDA cards to count on.
cards() {
    [ -n "${CARDS:-}" ] && echo "$CARDS" || python -P -c "import torch; print(torch.cuda.device_count())"
}

# Options that depend on the machine alone. fairseq's --fp16 and --bf16 would flatten all parameters into one, of which
# the optimizer could leave none out of the weight decay.
machine_options() {
    if [ "$(cards)" -gt 0 ]; then echo "--$PRECISION --fp16-no-flatten-grads"; else echo "--cpu"; fi
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

# run COMMAND...: run it, or only print it.
run() {
    if [ "${PRINT:-0}" = 1 ]; then
        printf '%q ' "$@"
        echo
    else
        "$@"
    fi
}
