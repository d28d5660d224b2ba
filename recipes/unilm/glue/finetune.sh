#!/usr/bin/env bash
# finetune.sh debug|TASK DATA CHECKPOINT OUTPUT [options of unified finetune]: GLUE with UniLM's settings [UniLM, sec. 3.4].
#
# DATA is a folder with the task's official files. Adamax at 5e-5, 5 epochs of 32 with 512 tokens, dropout before the last
# projection 0.1 (MNLI 0.3, CoLA and SST-2 0.05).
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
finetune_task sst2 "cola sst2 mrpc stsb qqp mnli qnli rte wnli sick" "--system unilm" "$@"
