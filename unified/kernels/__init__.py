"""What makes one kind of processor fast. The models work without it, and are what it is tested against."""
