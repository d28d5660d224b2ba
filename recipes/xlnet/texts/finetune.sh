#!/usr/bin/env bash
# finetune.sh debug|stsb|imdb DATA CHECKPOINT OUTPUT [options of unified finetune]: texts with the settings of XLNet's script.
#
# STS-B: 32 pairs of 128 tokens at 5e-5; 1,200 updates are 7 epochs. IMDB: 32 reviews of 512 tokens at 2e-5; 4,000 updates are 5
# epochs.
source "$(dirname "${BASH_SOURCE[0]}")/../../common/finetune.sh"
[ "${1:-}" = stsb ] && system="--system xlnet" || system=""
finetune_task imdb "stsb imdb" "$system" "$@"
