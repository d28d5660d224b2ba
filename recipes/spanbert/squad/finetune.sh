#!/usr/bin/env bash
# finetune.sh debug|1.1|2.0 DATA CHECKPOINT OUTPUT [options of unified finetune]: SQuAD [SpanBERT, sec. 4.2].
#
# 4 epochs of 32 sequences of 512 tokens at 2e-5, the published script's rate; the paper takes the best of five.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
finetune_squad "1.1 2.0" "--system spanbert" "$@"
