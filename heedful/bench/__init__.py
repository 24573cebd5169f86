"""Claims of speed, each a program that measures heedful and its peers in one run and prints ratios."""
