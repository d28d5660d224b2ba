#!/usr/bin/env bash
# finetune.sh debug|1.1|2.0 DATA CHECKPOINT OUTPUT [options of unified finetune]: SQuAD with the settings of XLNet's script.
#
# 48 sequences of 512 tokens, a rate of 3e-5 that falls by 0.75 from layer to layer; 8,000 updates are 4 epochs of 1.1 and 3 of
# 2.0. The end of an answer is read with its start, in beams of 5.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
finetune_squad "1.1 2.0" "--system xlnet" "$@"
