"""What the `borrowing` detector works with: rows of quota, who waits in them, what is told of them."""
