"""Loggers that a run names, `training.loggers=[csv, wandb]`: one file each."""
