#!/usr/bin/env bash
# check_gpus.sh [DATA]: does training on all cards of this machine give the losses of one card?
#
# Two updates of unified_lm_tiny without dropout in float32: once on every card, once on one card with as many micro-batches
# per update. Prints both columns and ends with status 1 where they differ by more than 0.002 bits. Without DATA it prepares
# this repository's documentation.
source "$(dirname "${BASH_SOURCE[0]}")/../common/machine.sh"
count=$(cards)
[ "$count" -ge 2 ] || { echo "check_gpus: this machine shows $count CUDA cards; the check needs two or more" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
data=${1:-$work/data}
[ $# -ge 1 ] || unified prepare "$ROOT"/docs/*/*.md "$ROOT/README.md" --valid "$ROOT/README.md" --output "$data" \
    --tokenizer unigram --vocabulary-size 1000

# losses LOG: the loss of every update.
losses() { grep -oE '"loss": "[0-9.]+"' "$1" | grep -oE '[0-9.]+' | head -n 2; }

train() {
    local log=$1
    shift
    fairseq-train "$data" --user-dir "$PLUGINS" --task unified_lm --criterion unified_lm --arch unified_lm_tiny \
        --tokens-per-sample 64 --batch-size 2 --dropout 0 --attention-dropout 0 --optimizer unified_adam --lr 1e-3 \
        --max-update 2 --disable-validation --no-save --log-format json --log-interval 1 --seed 1 --num-workers 0 \
        "$@" > "$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
}

train "$work/all.log" --distributed-world-size "$count"
CUDA_VISIBLE_DEVICES=0 train "$work/one.log" --distributed-world-size 1 --update-freq "$count"
echo "loss in bits: $count cards | one card, --update-freq $count"
paste <(losses "$work/all.log") <(losses "$work/one.log") | awk '
    { print "update " NR ": " $1 " | " $2; d = $1 - $2; if (d < 0) d = -d; if (d > 0.002 || NF != 2) bad = 1 }
    END { if (NR != 2 || bad) { print "DIFFERENT"; exit 1 } print "equal" }'
