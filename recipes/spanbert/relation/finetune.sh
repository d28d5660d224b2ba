#!/usr/bin/env bash
# finetune.sh debug|tacred|semeval2010 DATA CHECKPOINT OUTPUT [options of unified finetune]: relations.
#
# TACRED with SpanBERT's settings [SpanBERT, sec. 4.2]: a symbol for role and type in the place of each entity,
# 10 epochs of 32 at 2e-5, 128 tokens; with --system markers entity markers (Baldini Soares et al. 2019). SemEval-2010 task 8,
# whose entities have no types, with markers: 5 epochs of 64 at 3e-5.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
finetune_task tacred "tacred semeval2010" "" "$@"
