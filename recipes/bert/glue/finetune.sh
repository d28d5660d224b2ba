#!/usr/bin/env bash
# finetune.sh debug|TASK DATA CHECKPOINT OUTPUT [options of unified finetune]: GLUE (Devlin et al. 2019, 4.1 and A.3).
#
# DATA is a folder with the task's official files. 3 epochs of 32; the paper takes the best of the rates 2e-5 (ours), 3e-5,
# 4e-5 and 5e-5 on the development set: --lr. `submission.sh` writes what GLUE's server takes.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
finetune_task sst2 "cola sst2 mrpc stsb qqp mnli qnli rte wnli sick" "" "$@"
