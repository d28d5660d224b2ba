"""What `unified predict` needs beside its options."""
