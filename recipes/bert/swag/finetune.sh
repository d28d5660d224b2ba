#!/usr/bin/env bash
# finetune.sh debug|swag|codah|race|dream DATA CHECKPOINT OUTPUT [options of unified finetune]: multiple choice.
#
# SWAG with the settings of Devlin et al. 2019, section 4.4: 3 epochs of 16 items at 2e-5; CODAH alike. RACE and DREAM with
# those of XLNet's published script: 32 items at 2e-5, 512 tokens.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
DEBUG_TASK_OPTIONS=(--epochs 25 --batch-size 16 --max-length 32 --lr 2e-3 "${DEBUG_TRAINING[@]}")
finetune_task swag "swag codah race dream" "" "$@"
