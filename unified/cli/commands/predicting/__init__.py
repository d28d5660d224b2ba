"""Parts of `unified predict` besides its options."""
