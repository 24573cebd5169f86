"""Transfer learning: stages of pretraining, initial weights, frozen parts and LoRA, ablations."""
