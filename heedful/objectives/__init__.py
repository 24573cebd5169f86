"""Objectives: named losses, each a sum and a count."""
