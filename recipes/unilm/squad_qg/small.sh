#!/usr/bin/env bash
# small.sh OUTPUT: the whole recipe at the size of two CPU cores and about ten minutes.
#
# Pre-trains unified_lm_tiny on a part of pretrain_wiki, fine-tunes on 33 articles of SQuAD (sentence, answer -> question),
# decodes 500 questions of the dev set and scores them beside a baseline that copies the sentence. The figures say that the
# recipe works; at this size they say nothing about the method. Needs UNIFIED_DATA, the folder of real data.
#
#   PRETRAIN_UPDATES, FINETUNE_UPDATES   change how long it takes
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -eq 1 ] || usage "small.sh OUTPUT"
: "${UNIFIED_DATA:?small.sh needs UNIFIED_DATA, the folder of real data sets}"
output=$1
pretrain_updates=${PRETRAIN_UPDATES:-1800}
finetune_updates=${FINETUNE_UPDATES:-1200}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
mkdir -p "$output"

say() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

# logged NAME COMMAND...: everything into logs/NAME.log, progress and errors on the screen.
logged() {
    local log=$output/logs/$1.log
    shift
    mkdir -p "$output/logs"
    if ! "$@" 2>&1 | tee "$log" | { grep --line-buffered -E 'num_updates|Generate test|error' || true; } | sed -u 's,^\(.\{240\}\).*,\1,'; then
        echo "failed; all it printed is in $log" >&2
        exit 1
    fi
}

say "prepare Wikipedia"
[ -d "$output/wiki" ] || unified prepare "$UNIFIED_DATA/pretrain_wiki/train-00.jsonl.xz" --valid-share 0.01 \
    --destination "$output/wiki" --tokenizer unigram --vocabulary-size 8000 --sample-megabytes 3 \
    --character-coverage 0.9999

say "prepare SQuAD"
bash "$RECIPES/squad_qg/prepare.sh" "$output" "$output/wiki" --split paper --context sentence --max-source 180 \
    --test-sample 500 --local "$UNIFIED_DATA/squad/train-v1.1-36articles.json.xz" "$UNIFIED_DATA/squad/dev-v1.1.json.xz"

shared=(--user-dir "$PLUGINS" --task unified_lm --arch unified_lm_tiny --criterion unified_lm --initializer-range 0.03
    --dropout 0.0 --attention-dropout 0.0 --optimizer adam --adam-betas '(0.9, 0.98)'
    --clip-norm 1.0 --weight-decay 0.01 --lr-scheduler polynomial_decay --no-epoch-checkpoints --log-format simple
    --log-interval 100 --validate-interval 1000 --save-interval 1000 --num-workers 0 --seed 1 --cpu)

# Short rows and twice UniLM's share of hidden tokens: what a model of this size needs to learn from so few updates.
objectives='bidirectional(mask_share=0.3):2,seq2seq(mask_share=0.3):2'
objectives+=',left_to_right(mask_share=0.3):1,right_to_left(mask_share=0.3):1'
say "pre-train"
[ -f "$output/pretrained/checkpoint_last.pt" ] || logged pretrain fairseq-train "$output/wiki" "${shared[@]}" \
    --objectives "$objectives" --tokens-per-sample 32 --max-positions 32 --batch-size 48 --lr 1.5e-3 \
    --warmup-updates $((pretrain_updates / 10)) --total-num-update "$pretrain_updates" \
    --max-update "$pretrain_updates" --save-interval-updates "$pretrain_updates" --save-dir "$output/pretrained"

say "fine-tune"
rm -rf "$output/model"
logged finetune fairseq-train "$output/data" "${shared[@]}" --finetune-from-model "$output/pretrained/checkpoint_last.pt" \
    --objectives 'target_cloze(mask_probability=0.7)' --label-smoothing 0.1 --max-target 35 \
    --tokens-per-sample 224 --max-positions 224 --batch-size 7 --lr 2e-3 \
    --warmup-updates $((finetune_updates / 10)) --total-num-update "$finetune_updates" \
    --max-update "$finetune_updates" --save-interval-updates "$finetune_updates" --save-dir "$output/model"

say "generate"
rm -rf "$output/generated"
logged generate bash "$RECIPES/squad_qg/generate.sh" "$output" --tokens-per-sample 224 --max-len-b 30

say "scores of 500 dev questions"
echo "model:"
bash "$RECIPES/squad_qg/score.sh" "$output"
echo "baseline, the sentence copied:"
unified score question-generation "$output/text/test.sentences.txt" --penn-treebank \
    --references "$output/text/test.references.txt" --sources "$output/text/test.sentences.txt" \
    --output "$output/baseline.json"
say "done"
