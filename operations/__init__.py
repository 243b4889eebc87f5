"""What an operator does beside `pulumi up`: look at a living cluster, and go on after a killed engine."""
