#!/usr/bin/env bash
# submission.sh RUNS OUTPUT: the files that GLUE's server takes, from RUNS/TASK made by recipes/finetune.py with official test files.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/machine.sh"
[ $# -eq 2 ] || usage "submission.sh RUNS OUTPUT"
python "$ROOT/recipes/bert/glue/submission.py" "$1" "$2"
