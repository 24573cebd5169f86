"""What a run is, in words: its spec, the recipes, and specs of older versions."""
