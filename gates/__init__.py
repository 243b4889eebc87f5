"""What a gate really does: probes over three small API clients, and the loop that waits for them."""
