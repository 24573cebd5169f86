"""Transfer learning: initial weights, frozen parts and LoRA."""
