#!/usr/bin/env bash
# finetune.sh debug|TASK DATA CHECKPOINT OUTPUT [options of unified finetune]: summaries [UniLM, sec. 3.1].
#
# DATA is a folder with train.jsonl, validation.jsonl and test.jsonl. CNN/DailyMail: 30 epochs of 32 pairs, 70 % of the target
# hidden, smoothing 0.1, 768 positions, the first 640 tokens of the article, the extractive loss beside, beam 5; rate and length
# penalty are the released code's, as is all of Gigaword (gigaword_10k: 10,000 pairs of it, drawn). XSum is s2s-ft's.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
DEBUG_TASK_OPTIONS=(--epochs 1 --batch-size 8 --max-length 192 --lr 2e-3 "${DEBUG_TRAINING[@]}")
finetune_task cnn_dailymail "cnn_dailymail gigaword gigaword_10k xsum reuters scitldr" "" "$@"
