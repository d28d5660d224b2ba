#!/usr/bin/env bash
# small.sh OUTPUT: the whole recipe at the size of two CPU cores and about ten minutes.
#
# Pre-trains unified_lm_tiny on a part of pretrain_wiki, fine-tunes on 33 articles of SQuAD, writes 500 questions of the dev set
# and scores them beside a baseline that copies the sentence of the answer. The figures say that the recipe works; at
# this size they say nothing about the method. Needs UNIFIED_DATA, the folder of real data.
#
#   PRETRAIN_UPDATES, EPOCHS   change how long it takes
source "$(dirname "${BASH_SOURCE[0]}")/../../common/machine.sh"
[ $# -eq 1 ] || usage "small.sh OUTPUT"
: "${UNIFIED_DATA:?small.sh needs UNIFIED_DATA, the folder of real data sets}"
output=$1
pretrain_updates=${PRETRAIN_UPDATES:-1800}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
mkdir -p "$output"

say() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

# logged NAME COMMAND...: everything into logs/NAME.log, progress and errors on the screen.
logged() {
    local log=$output/logs/$1.log
    shift
    mkdir -p "$output/logs"
    if ! "$@" 2>&1 | tee "$log" | { grep --line-buffered -E 'num_updates|error' || true; } | sed -u 's,^\(.\{240\}\).*,\1,'; then
        echo "failed; all it printed is in $log" >&2
        exit 1
    fi
}

say "prepare Wikipedia"
[ -d "$output/wiki" ] || unified prepare "$UNIFIED_DATA/pretrain_wiki/train-00.jsonl.xz" --valid-share 0.01 \
    --output "$output/wiki" --tokenizer unigram --vocabulary-size 8000 --sample-megabytes 3 \
    --character-coverage 0.9999 --clean sentences

say "questions of SQuAD"
python "$ROOT/recipes/common/squad_splits.py" "$output/squad" --train "$UNIFIED_DATA/squad/train-v1.1-36articles.json.xz" \
    --dev "$UNIFIED_DATA/squad/dev-v1.1.json.xz" --questions 500

# Short rows and twice UniLM's share of hidden tokens: what a model of this size needs to learn from so few updates.
objectives='bidirectional(mask_share=0.3):2,seq2seq(mask_share=0.3):2'
objectives+=',left_to_right(mask_share=0.3):1,right_to_left(mask_share=0.3):1'
say "pre-train"
[ -f "$output/pretrained/checkpoint_last.pt" ] || logged pretrain fairseq-train "$output/wiki" --user-dir "$PLUGINS" \
    --task unified_lm --arch unified_lm_tiny --criterion unified_lm --initializer-range 0.03 --dropout 0 \
    --attention-dropout 0 --optimizer unified_adam --adam-betas '(0.9, 0.98)' --clip-norm 1.0 --weight-decay 0.01 \
    --lr-scheduler polynomial_decay --no-epoch-checkpoints --log-format simple --log-interval 100 \
    --validate-interval 1000 --save-interval 1000 --num-workers 0 --seed 1 --cpu \
    --objectives "$objectives" --tokens-per-sample 32 --max-positions 32 --batch-size 48 --lr 1.5e-3 \
    --warmup-updates $((pretrain_updates / 10)) --total-num-update "$pretrain_updates" \
    --max-update "$pretrain_updates" --save-interval-updates "$pretrain_updates" --save-dir "$output/pretrained"

say "fine-tune, write, score"
logged finetune python "$ROOT/recipes/finetune.py" unilm squad_qg "$output/squad" "$output/pretrained" "$output/model" \
    --epochs "${EPOCHS:-1}" --batch-size 8 --max-length 224 --lr 2e-3
python "$ROOT/recipes/peers/lead.py" squad_qg --data "$output/model/items" --output "$output/baseline" > "$output/logs/baseline.log"

say "scores"
unified results "$output/model" "$output/baseline" | tee "$output/tables.md"
say "done"
