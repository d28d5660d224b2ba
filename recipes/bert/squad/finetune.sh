#!/usr/bin/env bash
# finetune.sh debug|1.1|2.0 DATA CHECKPOINT OUTPUT [options of unified finetune]: SQuAD (Devlin et al. 2019, 4.2 and 4.3).
#
# 3 epochs of 32 sequences for 1.1, 2 of 48 for 2.0, both with 384 tokens and a rate of 5e-5.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
finetune_squad "1.1 2.0" "" "$@"
