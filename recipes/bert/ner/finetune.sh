#!/usr/bin/env bash
# finetune.sh debug|conll2003|wnut17 DATA CHECKPOINT OUTPUT [options of unified finetune]: named entities.
#
# Devlin et al. 2019, section 5.3: a cased model, document context for CoNLL-2003, no CRF. Table 7's features:
# --head "tagging(context=True,features='concat_last_four')" with a rate and epochs for a new network, such as
# --lr 1e-3 --epochs 20 (the paper does not say).
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
finetune_task wnut17 "conll2003 wnut17" "" "$@"
