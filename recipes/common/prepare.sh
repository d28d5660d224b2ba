# Sourced by the prepare.sh of every system: what their calls of `unified prepare` share.
#
#   TOKENIZER     a ready tokenizer (vocab.txt, a sentencepiece model, a prepared folder) instead of training the paper's kind

source "$(dirname "${BASH_SOURCE[0]}")/machine.sh"

# tokenizer_options KIND VOCABULARY [OPTIONS]: train it, or take TOKENIZER.
tokenizer_options() {
    local kind=$1 size=$2
    shift 2
    if [ -n "${TOKENIZER:-}" ]; then
        echo "--tokenizer $TOKENIZER"
    else
        echo "--tokenizer $kind --vocabulary-size $size $*"
    fi
}

# prepare SIZE OUTPUT OPTIONS... : a folder to pre-train on, with a part for validation.
prepare() {
    local size=$1 output=$2 share=0.001
    shift 2
    [ "$size" != debug ] || share=0.1
    run unified prepare --output "$output" --valid-share "$share" "$@"
}
