"""What commands that annotate texts share."""
