#!/usr/bin/env bash
# finetune.sh debug|TASK DATA CHECKPOINT OUTPUT [options of unified finetune]: GLUE [SpanBERT, sec. 4.2].
#
# DATA is a folder with the task's official files. 10 epochs (CoLA 4) with 128 tokens; the paper takes the best of the rates
# 5e-6, 1e-5, 2e-5 (ours), 3e-5 and 5e-5 and of 16 and 32 (ours) items on the development set.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
finetune_task sst2 "cola sst2 mrpc stsb qqp mnli qnli rte wnli sick" "--system spanbert" "$@"
