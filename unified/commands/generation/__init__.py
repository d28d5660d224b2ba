"""What `unified generate` is made of."""
