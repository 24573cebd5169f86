"""Families of models whose parts are of other families: what one reads, another writes of."""
