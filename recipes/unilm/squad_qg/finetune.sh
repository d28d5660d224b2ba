#!/usr/bin/env bash
# finetune.sh debug|TASK DATA CHECKPOINT OUTPUT [options of unified finetune]: questions to SQuAD's answers [UniLM, sec. 3.3].
#
# DATA is a folder with train-v1.1.json, dev-v1.1.json and, for the splits of Du et al. and its reversal, doclist-test.txt. 10
# epochs of 32 pairs, 70 % of the target hidden, smoothing 0.1, sources of 456 tokens; rate and row length are the released
# code's. Decoded with beam 3, the two other splits with beam 1.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
DEBUG_TASK_OPTIONS=(--epochs 1 --batch-size 16 --max-length 96 --lr 2e-3 "${DEBUG_TRAINING[@]}")
finetune_task squad_qg "squad_qg squad_qg_du squad_qg_reversed" "" "$@"
