"""From token files to texts and rows: which texts an epoch has, and which rows hold them."""
