"""What the `pending` detector works with: Kueue's messages, objects, and the sentence between them."""
