"""Losses on where heads look (attention regularisation), a paper, a file: for any task whose model has attention."""
