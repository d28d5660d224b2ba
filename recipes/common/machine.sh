# Sourced by the recipes' scripts: where things are.
#
#   CARDS         CUDA cards to count on (default: what torch sees)

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# The checkout's own environment, where no other that has the library is active.
command -v unified > /dev/null || PATH="$ROOT/.venv/bin:$PATH"
PLUGINS=$ROOT/fairseq_plugins
export PYTHONUNBUFFERED=1 PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"

# Number of CUDA cards to count on.
cards() {
    [ -n "${CARDS:-}" ] && echo "$CARDS" || python -P -c "import torch; print(torch.cuda.device_count())"
}

# usage TEXT: end with what the script expects.
usage() {
    echo "usage: $1" >&2
    exit 2
}
