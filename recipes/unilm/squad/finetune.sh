#!/usr/bin/env bash
# finetune.sh debug|2.0 DATA CHECKPOINT OUTPUT [options of unified finetune]: SQuAD 2.0 [UniLM, sec. 3.2.1].
#
# 3 epochs of 24 sequences of 384 tokens; whether there is an answer is read from the first token. The paper names no rate, 3e-5
# here.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
finetune_squad "2.0" "--system unilm" "$@"
