"""What the packer of batches and the kernel agree upon."""

CHUNK = 16  # documents begin and end at multiples of this many tokens
