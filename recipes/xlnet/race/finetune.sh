#!/usr/bin/env bash
# finetune.sh debug|race|dream DATA CHECKPOINT OUTPUT [options of unified finetune]: choices with the settings of XLNet's script.
#
# RACE: 32 items of 512 tokens at 2e-5; 12,000 updates are 4 epochs. DREAM alike.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
DEBUG_TASK_OPTIONS=(--epochs 16 --batch-size 16 --max-length 48 --lr 2e-3 "${DEBUG_TRAINING[@]}")
finetune_task dream "race dream" "" "$@"
