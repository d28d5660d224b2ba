#!/usr/bin/env bash
# finetune.sh debug|coqa|coqa_free DATA CHECKPOINT OUTPUT [options of unified finetune]: CoQA [UniLM, secs. 3.2.1 and 3.2.2].
#
# DATA is a folder with coqa-train-v1.0.json and coqa-dev-v1.0.json. Extractive (coqa): 2 epochs of 16, 512 tokens. Generative
# (coqa_free): 10 epochs of 32 pairs, half of the target hidden, smoothing 0.1, sources of 470 tokens, beam 3; the paper names
# no rate, 2e-5 is that of its question generation.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
DEBUG_TASK_OPTIONS=(--epochs 1 --batch-size 16 --max-length 96 --lr 2e-3 "${DEBUG_TRAINING[@]}")
finetune_task coqa_free "coqa coqa_free" "" "$@"
