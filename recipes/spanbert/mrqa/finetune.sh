#!/usr/bin/env bash
# finetune.sh debug|mrqa DATA CHECKPOINT OUTPUT [options of unified finetune]: MRQA (Joshi et al. 2020, section 4.2).
#
# DATA has folders train and dev with the .jsonl.gz files of one or several data sets. Settings as for SQuAD.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
DEBUG_TASK_OPTIONS=("${DEBUG_ANSWER_OPTIONS[@]}")
finetune_task mrqa "mrqa" "" "$@"
