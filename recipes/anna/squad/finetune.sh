#!/usr/bin/env bash
# finetune.sh debug|1.1|2.0 DATA CHECKPOINT OUTPUT [options of unified finetune]: SQuAD of ANNA [ANNA, sec. 4.2].
#
# The paper gives no settings of fine-tuning; these are BERT's.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
finetune_squad "1.1 2.0" "" "$@"
