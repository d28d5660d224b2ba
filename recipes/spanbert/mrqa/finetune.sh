#!/usr/bin/env bash
# finetune.sh debug|TASK DATA CHECKPOINT OUTPUT [options of unified finetune]: MRQA [SpanBERT, sec. 4.2].
#
# DATA has folders train and dev with MRQA's .jsonl.gz files. TASK is mrqa: a model for each of five data sets, scored on half of its
# development set, and their average; or one of them: newsqa, triviaqa, searchqa, hotpotqa, naturalquestions. Settings as for SQuAD.
# The paper places the passage first, its code the question: --head 'span(passage_first=True)' is the paper's.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
DEBUG_TASK_OPTIONS=("${DEBUG_ANSWER_OPTIONS[@]}")
finetune_task newsqa "mrqa newsqa triviaqa searchqa hotpotqa naturalquestions" "" "$@"
