"""What makes one kind of processor fast. Models are plain PyTorch without it, and it is tested against them."""
