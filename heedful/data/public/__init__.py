"""Public data sets: their catalogue, and how they are downloaded."""
