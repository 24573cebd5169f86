"""Training: one loop for every task, and what a run leaves behind."""
